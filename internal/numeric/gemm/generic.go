package gemm

import "github.com/weft-ml/weft/internal/numeric/parallel"

// Number is the constraint of the element types of Generic.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Generic computes C = A*B, or C += A*B, for any number type. Integers wrap around. Strides are
// arbitrary.
func Generic[T Number](c, a, b Matrix[T], add bool) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows {
		check(c, a, b, nil)
	}
	if !add {
		scale(c, 0)
	}
	// Rows of a block share the panel of B. A block takes about 100 µs.
	const blockWork = 100_000
	grain := max(4, blockWork/max(1, b.Rows*b.Cols))
	parallel.For(c.Rows, grain, func(lo, hi int) {
		genericRows(c.part(lo, hi, 0, c.Cols), a.part(lo, hi, 0, a.Cols), b)
	})
}

// genericRows adds A*B to C, with blocks of B of 64x256 elements.
func genericRows[T Number](c, a, b Matrix[T]) {
	const depth, width = 64, 256
	for j0 := 0; j0 < b.Cols; j0 += width {
		j1 := min(b.Cols, j0+width)
		for k0 := 0; k0 < b.Rows; k0 += depth {
			k1 := min(b.Rows, k0+depth)
			for i := range c.Rows {
				if b.ColStride == 1 && c.ColStride == 1 {
					row := c.Data[c.at(i, j0):][:j1-j0]
					for k := k0; k < k1; k++ {
						axpy(row, a.Data[a.at(i, k)], b.Data[b.at(k, j0):])
					}
					continue
				}
				for j := j0; j < j1; j++ {
					var sum T
					for k := k0; k < k1; k++ {
						sum += a.Data[a.at(i, k)] * b.Data[b.at(k, j)]
					}
					c.Data[c.at(i, j)] += sum
				}
			}
		}
	}
}

func axpy[T Number](y []T, a T, x []T) {
	x = x[:len(y)]
	for j, v := range x {
		y[j] += a * v
	}
}
