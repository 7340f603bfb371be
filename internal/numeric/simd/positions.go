package simd

import "slices"

// firstEqualRows finds numbers in the rows of a matrix.
type firstEqualRows[T any] struct {
	asm levels[func(at *int64, x, values *T, rows, cols int)]
}

var (
	firstEqual    pair[firstEqualRows[float32], firstEqualRows[float64]]
	firstEqualInt firstEqualRows[int32]
)

// FirstEqual sets at[i] to the first position in row i of x of an element equal to values[i], or to
// -1. Rows have cols elements.
func FirstEqual[T Float](at []int64, x, values []T, cols int) {
	if isFloat32[T]() {
		findEqual(&firstEqual.f32, at, as[float32](x), as[float32](values), cols)
	} else {
		findEqual(&firstEqual.f64, at, as[float64](x), as[float64](values), cols)
	}
}

// FirstEqualInt is FirstEqual for integers.
func FirstEqualInt(at []int64, x, values []int32, cols int) {
	findEqual(&firstEqualInt, at, x, values, cols)
}

func findEqual[T comparable](k *firstEqualRows[T], at []int64, x, values []T, cols int) {
	x, values = x[:len(at)*cols], values[:len(at)]
	if l := Current(); l != Generic && cols > 0 && cols <= piece {
		forRows(len(at), cols, func(row, rows, _, _ int) { k.asm[l-1](&at[row], &x[row*cols], &values[row], rows, cols) })
		return
	}
	for i, v := range values {
		at[i] = int64(slices.Index(x[i*cols:][:cols], v))
	}
}
