package mathops

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestRemainder compares bits with math.Mod for special values, numbers next to multiples, and
// random bits.
func TestRemainder(t *testing.T) {
	check := func(t *testing.T, x, y float64) {
		got, want := remainder(x, y), math.Mod(x, y)
		if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("remainder(%v, %v) = %v, want %v", x, y, got, want)
		}
	}
	special := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, -3, 1 << 52, 1<<53 - 1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022,
		-0x1.8p-1050, math.Inf(1), math.Inf(-1), math.NaN(),
	}
	for _, x := range special {
		for _, y := range special {
			check(t, x, y)
		}
	}
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, seed))
			for range 50_000 {
				y := math.Float64frombits(rng.Uint64())
				check(t, math.Float64frombits(rng.Uint64()), y)
				n := math.Trunc(math.Exp2(60*rng.Float64())) * float64(1-2*rng.IntN(2))
				near := n * y
				check(t, near, y)
				check(t, math.Nextafter(near, math.Inf(1)), y)
				check(t, math.Nextafter(near, math.Inf(-1)), y)
				x := float64(float32(rng.NormFloat64()))
				check(t, x, float64(float32(rng.NormFloat64())*rng.Float32()))
			}
		})
	}
}
