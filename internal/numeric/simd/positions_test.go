package simd

import (
	"math"
	"slices"
	"testing"
)

func TestFirstEqual(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, cols := range append([]int{piece, piece + 1}, lengths...) {
			testFirstEqual(t, cols, func(at []int64, x, values []float32) { FirstEqual(at, x, values, cols) })
			testFirstEqual(t, cols, func(at []int64, x, values []float64) { FirstEqual(at, x, values, cols) })
			testFirstEqual(t, cols, func(at []int64, x, values []int32) { FirstEqualInt(at, x, values, cols) })
		}
		at := make([]int64, 1)
		if FirstEqual(at, []float32{1, float32(math.NaN())}, []float32{float32(math.NaN())}, 2); at[0] != -1 {
			t.Errorf("what is not a number is equal to element %d", at[0])
		}
	})
}

// testFirstEqual searches for a value that the last row does not contain. The other rows contain it
// twice, at various positions.
func testFirstEqual[T float32 | float64 | int32](t *testing.T, cols int, find func(at []int64, x, values []T)) {
	t.Helper()
	const rows = 5
	x, values, at := make([]T, rows*cols+40), make([]T, rows), make([]int64, rows)
	for i := range x {
		x[i] = T(i)
	}
	want := []int64{-1, -1, -1, -1, -1}
	for i := range values {
		values[i] = T(rows*cols + i) // after the rows
		if row := x[i*cols:][:cols]; cols > 0 && i < rows-1 {
			want[i] = int64(i * (cols - 1) / 3)
			row[want[i]], row[cols-1] = values[i], values[i]
		}
	}
	find(at, x[:rows*cols], values)
	if !slices.Equal(at, want) {
		t.Fatalf("in rows of %d %T: found at %v, want %v", cols, x[0], at, want)
	}
}
