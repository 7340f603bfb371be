package gemm

import (
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
)

// tiny is the number of multiply-adds below which plain loops win.
const tiny = 256

// mulTiny is Mul without any preparation.
func mulTiny[T simd.Float](c, a, b Matrix[T], o Options[T]) {
	for i := range c.Rows {
		row := c.Data[i*c.RowStride:][:c.Cols]
		for j := range row {
			var sum T
			pa, pb := a.at(i, 0), b.at(0, j)
			for range a.Cols {
				sum += a.Data[pa] * b.Data[pb]
				pa += a.ColStride
				pb += b.RowStride
			}
			sum *= o.Alpha
			if o.Beta != 0 {
				sum += o.Beta * row[j]
			}
			if o.Bias != nil {
				sum += o.Bias[j]
			}
			if o.Relu && sum < 0 {
				sum = 0
			}
			row[j] = sum
		}
	}
}

// rowTimesMatrix is Mul for an A of one row; c is the row of C.
func rowTimesMatrix[T simd.Float](c []T, a, b Matrix[T], o Options[T]) {
	k := a.Cols
	if b.ColStride != 1 {
		// Rows of B's transpose are contiguous: C^T = B^T A^T.
		matrixTimesColumn(Matrix[T]{c, len(c), 1, 1, 1}, b.T(), a.T(), Options[T]{Alpha: o.Alpha, Beta: o.Beta})
		finishRow(c, o)
		return
	}
	if k*len(c) < parallelWork {
		rowTimesColumns(c, a, b, 0, o)
		return
	}
	parallel.For(len(c), vectorGrain(k), func(lo, hi int) { rowTimesColumns(c[lo:hi], a, b, lo, o) })
}

// vectorGrain is the number of results, each of k multiply-adds, that make a parallel block.
func vectorGrain(k int) int { return ceilDiv(max(64, parallelWork/2/k), 64) * 64 }

// rowTimesColumns computes the part c of a row, which begins at column j.
func rowTimesColumns[T simd.Float](c []T, a, b Matrix[T], j int, o Options[T]) {
	scaleRow(c, o.Beta)
	k := a.Cols
	row := func(i int) []T { return b.Data[i*b.RowStride+j:][:len(c)] }
	x := func(i int) T { return o.Alpha * a.Data[i*a.ColStride] }
	i := 0
	for ; i+4 <= k; i += 4 {
		f := [4]T{x(i), x(i + 1), x(i + 2), x(i + 3)}
		simd.Axpy4(c, &f, row(i), row(i+1), row(i+2), row(i+3))
	}
	for ; i < k; i++ {
		simd.Axpy(c, x(i), row(i))
	}
	if o.Bias != nil {
		o.Bias = o.Bias[j:]
	}
	finishRow(c, o)
}

func scaleRow[T simd.Float](c []T, beta T) {
	switch beta {
	case 0:
		clear(c)
	case 1:
	default:
		simd.MulScalar(c, c, beta)
	}
}

func finishRow[T simd.Float](c []T, o Options[T]) {
	if o.Bias != nil {
		simd.Add(c, c, o.Bias)
	}
	if o.Relu {
		simd.Relu(c, c)
	}
}

// matrixTimesColumn is Mul for a B of one column.
func matrixTimesColumn[T simd.Float](c, a, b Matrix[T], o Options[T]) {
	m, k := c.Rows, a.Cols
	s := scratchOf[T]()
	defer s.release()
	x := b.Data
	if b.RowStride != 1 {
		grow(&s.bufB, k)
		x = s.bufB
		for i := range k {
			x[i] = b.Data[i*b.RowStride]
		}
	}
	if a.ColStride == 1 {
		if m*k < parallelWork {
			rowsTimesColumn(c, a, x, 0, m, o)
		} else {
			parallel.For(m, vectorGrain(k), func(lo, hi int) { rowsTimesColumn(c, a, x, lo, hi, o) })
		}
		finish(c, o)
		return
	}
	// Columns of A are contiguous: the product is a sum of columns, taken in a row of its own.
	grow(&s.bufA, m)
	y := s.bufA[:m]
	rowTimesMatrix(y, Matrix[T]{x, 1, k, k, 1}, a.T(), Options[T]{Alpha: o.Alpha})
	for i, v := range y {
		p := &c.Data[i*c.RowStride]
		if o.Beta != 0 {
			v += o.Beta * *p
		}
		*p = v
	}
	finish(c, o)
}

// rowsTimesColumn computes the elements [lo, hi) of a column, without bias and rectifier.
func rowsTimesColumn[T simd.Float](c, a Matrix[T], x []T, lo, hi int, o Options[T]) {
	for i := lo; i < hi; i++ {
		p := &c.Data[i*c.RowStride]
		sum := o.Alpha * simd.Dot(a.Data[i*a.RowStride:][:a.Cols], x)
		if o.Beta != 0 {
			sum += o.Beta * *p
		}
		*p = sum
	}
}
