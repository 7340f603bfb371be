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
		line := make([]float32, n)
		for i := range line {
			line[i] = float32(rng.IntN(n))
		}
		slices.Sort(line)
		wanted := []float32{-1, float32(n), float32(math.NaN()), float32(math.Inf(1))}
		for len(wanted) < 23 {
			wanted = append(wanted, float32(rng.IntN(n+1))-0.5*float32(rng.IntN(2)))
		}
		lower, upper := make([]int32, len(wanted)), make([]int64, len(wanted))
		LowerBounds(lower, line, wanted)
		UpperBounds(upper, line, wanted)
		for i, w := range wanted {
			if want := sort.Search(n, func(k int) bool { return line[k] >= w }); int(lower[i]) != want {
				t.Errorf("%v: %v is not before element %d, but %d", line, w, lower[i], want)
			}
			if want := sort.Search(n, func(k int) bool { return line[k] > w }); int(upper[i]) != want {
				t.Errorf("%v: %v is before element %d, not %d", line, w, want, upper[i])
			}
		}
	}
}
