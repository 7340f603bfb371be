package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestSortByKeys compares the two ways to order a row that contains duplicates, zeros of both signs
// and infinities.
func TestSortByKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	floats, ints := make([]float32, 300), make([]int32, 300)
	for i := range floats {
		floats[i] = float32(rng.IntN(40) - 20)
		if floats[i] == 0 && i%2 == 0 {
			floats[i] = float32(math.Copysign(0, -1))
		}
		ints[i] = int32(rng.IntN(40) - 20)
	}
	floats[7], floats[9], floats[11] = float32(math.Inf(1)), float32(math.Inf(-1)), -math.SmallestNonzeroFloat32
	ints[7], ints[9] = math.MaxInt32, math.MinInt32
	for _, n := range []int{len(floats), fewKeys - 1} { // radix sort, comparison sort
		testSortByKeys(t, floats[:n], less)
		testSortByKeys(t, ints[:n], less)
	}
	floats[3] = float32(math.NaN())
	if sortByKeys(make([]int64, 5), floats, make([]uint64, 2*len(floats))) {
		t.Error("sorted a row that contains NaN")
	}
}

func testSortByKeys[T tensor.Elem](t *testing.T, row []T, less func(a, b T) bool) {
	t.Helper()
	for _, k := range []int{1, 50, len(row)} {
		got, want := make([]int64, k), make([]int64, k)
		largest(want, row, less)
		if !sortByKeys(got, row, make([]uint64, 2*len(row))) || !slices.Equal(got, want) {
			t.Errorf("the largest %d of type %T are at %v, want %v", k, row[0], got, want)
		}
	}
}
