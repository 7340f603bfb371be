package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestScatter(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testScatter[uint32](t)
		testScatter[uint64](t)
	})
}

func testScatter[E uint32 | uint64](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for _, width := range []int{1, 3, 4, 7, 16, 33, 64, 100, 1000} {
		for _, n := range []int{0, 1, 7, 8, 9, 200} {
			const rows = 50
			src, list := make([]E, n*width), randomRows(rng, n, rows)
			for i := range src {
				src[i] = E(i + 1)
			}
			got, want := make([]E, rows*width), make([]E, rows*width)
			Scatter(got, src, list, width)
			for i, row := range list {
				copy(want[int(row)*width:], src[i*width:(i+1)*width])
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of %d: %v, want %v", n, width, got, want)
			}
		}
	}
}

func TestScatterAdd(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testScatterAdd[float32](t)
		testScatterAdd[float64](t)
	})
}

func testScatterAdd[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, width := range []int{1, 3, 4, 7, 16, 33, 64, 100, 1000} {
		for _, n := range []int{0, 1, 7, 8, 9, 200} {
			const rows, sources = 50, 30
			src, to, from := make([]T, sources*width), randomRows(rng, n, rows), randomRows(rng, n, sources)
			for i := range src {
				src[i] = T(rng.NormFloat64())
			}
			got, want := make([]T, rows*width), make([]T, rows*width)
			ScatterAdd(got, src, to, from, width)
			for i := range to {
				for k := range width {
					want[int(to[i])*width+k] += src[int(from[i])*width+k]
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of %d: %v, want %v", n, width, got, want)
			}
		}
	}
}

// randomRows returns a list of n row numbers.
func randomRows(rng *rand.Rand, n, rows int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = rng.Int64N(int64(rows))
	}
	return list
}
