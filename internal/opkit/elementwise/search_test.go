package elementwise

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, n := range []int{0, 1, 2, 3, 10, 100} {
		sorted := make([]float32, n)
		for i := range sorted {
			sorted[i] = float32(rng.IntN(n))
		}
		slices.Sort(sorted)
		keys := []float32{-1, float32(n), float32(math.NaN()), float32(math.Inf(1))}
		for len(keys) < 23 {
			keys = append(keys, float32(rng.IntN(n+1))-0.5*float32(rng.IntN(2)))
		}
		lower, upper := make([]int32, len(keys)), make([]int64, len(keys))
		LowerBounds(lower, sorted, keys)
		UpperBounds(upper, sorted, keys)
		for i, w := range keys {
			if want := sort.Search(n, func(k int) bool { return sorted[k] >= w }); int(lower[i]) != want {
				t.Errorf("%v: %v is not before element %d, but %d", sorted, w, lower[i], want)
			}
			if want := sort.Search(n, func(k int) bool { return sorted[k] > w }); int(upper[i]) != want {
				t.Errorf("%v: %v is before element %d, not %d", sorted, w, want, upper[i])
			}
		}
	}
}
