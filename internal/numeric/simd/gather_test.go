package simd

import (
	"math/rand/v2"
	"testing"
)

func TestGather(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testGather[uint32](t)
		testGather[uint64](t)
	})
}

func testGather[E uint32 | uint64](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for _, width := range []int{1, 3, 4, 7, 16, 33, 64, 100, 1000} {
		const rows = 50
		src := make([]E, rows*width)
		for i := range src {
			src[i] = E(i)
		}
		for _, n := range []int{0, 1, 7, 8, 9, 200} {
			list := make([]int64, n)
			for i := range list {
				list[i] = rng.Int64N(rows)
			}
			dst := make([]E, n*width+1)
			Gather(dst[:n*width], src, list, width)
			for i, row := range list {
				for k := range width {
					if got, want := dst[i*width+k], src[int(row)*width+k]; got != want {
						t.Fatalf("element %d of row %d of %d rows of %d is %d, want %d", k, i, n, width, got, want)
					}
				}
			}
			if dst[n*width] != 0 {
				t.Fatalf("the element after %d rows of %d is overwritten", n, width)
			}
		}
	}
}
