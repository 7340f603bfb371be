package stringops

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestBuilder checks that strings in different blocks equal strings built individually.
func TestBuilder(t *testing.T) {
	var want []string
	for i := range 700 {
		want = append(want, strings.Repeat("x", i%50)+string(rune('a'+i%26)))
	}
	want = append(want, "", strings.Repeat("y", 3*blockSize), "", "z")
	got := make([]string, len(want))
	b := newBuilder(got)
	for _, s := range want {
		b.buf = append(b.buf, s...)
		b.next()
	}
	b.flush()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRemainder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	for range 10000 {
		v := rng.Uint64() >> rng.IntN(64)
		for _, n := range []uint64{1, 2, 3, 1000, math.MaxInt64, rng.Uint64N(math.MaxInt64)>>rng.IntN(63) + 1} {
			for _, v := range []uint64{v, n - 1, n, n + 1, math.MaxUint64, math.MaxUint64 - n} {
				if got := remainder(v, n, math.MaxUint64/n); got != v%n {
					t.Fatalf("%d modulo %d: %d, want %d", v, n, got, v%n)
				}
			}
		}
	}
}
