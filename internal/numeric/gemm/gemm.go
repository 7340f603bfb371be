// Package gemm multiplies matrices.
//
// Mul is for float32 and float64. It uses cache-sized blocks, packed panels, and the micro-kernels
// of package microkernel, on all idle cores. Vectors and tiny matrices take shorter paths. Generic
// supports any other number type, Half supports types that are computed in float32, and BFloat16
// uses the processor's bfloat16 instructions if there are any.
//
// Results are bit-identical for any number of cores. Every element is one chain of multiply-adds in
// the order of k, divided only at the boundaries of blocks of k. These depend only on the shapes.
package gemm

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Matrix is a view of a matrix in Data: element (i, j) is Data[i*RowStride+j*ColStride].
type Matrix[T any] struct {
	Data                 []T
	Rows, Cols           int
	RowStride, ColStride int
}

// Dense views data as a row-major matrix without gaps.
func Dense[T any](data []T, rows, cols int) Matrix[T] {
	return Matrix[T]{data, rows, cols, cols, 1}
}

// T returns the transpose, a view of the same data.
func (m Matrix[T]) T() Matrix[T] {
	return Matrix[T]{m.Data, m.Cols, m.Rows, m.ColStride, m.RowStride}
}

func (m Matrix[T]) at(i, j int) int { return i*m.RowStride + j*m.ColStride }

// part returns the block of the given rows and columns. An empty block has no data.
func (m Matrix[T]) part(i0, i1, j0, j1 int) Matrix[T] {
	p := Matrix[T]{nil, i1 - i0, j1 - j0, m.RowStride, m.ColStride}
	if i0 < i1 && j0 < j1 {
		p.Data = m.Data[m.at(i0, j0) : m.at(i1-1, j1-1)+1]
	}
	return p
}

func (m Matrix[T]) String() string {
	return fmt.Sprintf("%dx%d with strides %d, %d in %d elements", m.Rows, m.Cols, m.RowStride, m.ColStride, len(m.Data))
}

// Options modify a product. The zero value is C = A*B.
type Options[T any] struct {
	Alpha T    // factor of A*B; 0 means 1
	Beta  T    // factor of the old C, which is not read if Beta is 0
	Bias  []T  // added to every row of the result; may be nil
	Relu  bool // set negative elements of the result to 0
}

// Mul computes C = Alpha*A*B + Beta*C, then adds the bias and rectifies. One stride of each matrix
// must be 1. C must not overlap A or B. Mul panics if the shapes do not match or a matrix exceeds
// its data.
func Mul[T simd.Float](c, a, b Matrix[T], o Options[T]) {
	check(c, a, b, o.Bias)
	if o.Alpha == 0 {
		o.Alpha = 1
	}
	switch m, n, k := c.Rows, c.Cols, a.Cols; {
	case m == 0 || n == 0:
	case k == 0:
		scale(c, o.Beta)
		finish(c, o)
	case c.ColStride != 1 && o.Bias == nil:
		// C is stored by columns: compute its transpose.
		mulRows(c.T(), b.T(), a.T(), o)
	case c.ColStride != 1:
		plain := Options[T]{Alpha: o.Alpha, Beta: o.Beta}
		mulRows(c.T(), b.T(), a.T(), plain)
		finish(c, o)
	default:
		mulRows(c, a, b, o)
	}
}

// mulRows is Mul for a C whose rows are contiguous.
func mulRows[T simd.Float](c, a, b Matrix[T], o Options[T]) {
	switch m, n, k := c.Rows, c.Cols, a.Cols; {
	case m*n*k <= tiny:
		mulTiny(c, a, b, o)
	case m == 1:
		rowTimesMatrix(c.Data[:n], a, b, o)
	case n == 1:
		matrixTimesColumn(c, a, b, o)
	default:
		mulBlocks(microkernel.Of[T](), c, a, b, o)
	}
}

// scale multiplies c by beta. It does not read c if beta is 0.
func scale[T Number](c Matrix[T], beta T) {
	if beta == 1 {
		return
	}
	for i := range c.Rows {
		for j := range c.Cols {
			p := &c.Data[c.at(i, j)]
			if beta == 0 {
				*p = 0
			} else {
				*p *= beta
			}
		}
	}
}

// finish adds the bias and rectifies.
func finish[T simd.Float](c Matrix[T], o Options[T]) {
	if o.Bias == nil && !o.Relu {
		return
	}
	for i := range c.Rows {
		for j := range c.Cols {
			p := &c.Data[c.at(i, j)]
			if o.Bias != nil {
				*p += o.Bias[j]
			}
			if o.Relu && *p < 0 {
				*p = 0
			}
		}
	}
}

func check[T any](c, a, b Matrix[T], bias []T) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows {
		panic(fmt.Sprintf("gemm: shapes do not fit: %v = %v times %v", c, a, b))
	}
	for _, m := range []*Matrix[T]{&c, &a, &b} {
		if m.Rows <= 0 || m.Cols <= 0 {
			continue
		}
		if m.RowStride != 1 && m.ColStride != 1 || m.at(m.Rows-1, m.Cols-1) >= len(m.Data) {
			panic(fmt.Sprintf("gemm: no such matrix: %v", *m))
		}
	}
	if bias != nil && len(bias) < c.Cols {
		panic(fmt.Sprintf("gemm: bias of %d elements for %d columns", len(bias), c.Cols))
	}
}
