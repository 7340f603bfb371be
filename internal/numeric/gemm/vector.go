package gemm

import (
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// tiny is the number of multiply-adds below which plain loops are faster.
const tiny = 256

// mulTiny is Mul without any setup.
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

// rowTimesMatrix is Mul for an A of one row. c is the row of C.
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

// vectorGrain returns the number of results, each of k multiply-adds, in a parallel block.
func vectorGrain(k int) int { return ceilDiv(max(64, parallelWork/2/k), 64) * 64 }

// rowTimesColumns computes the part c of a row, which begins at column j.
func rowTimesColumns[T simd.Float](c []T, a, b Matrix[T], j int, o Options[T]) {
	scaleRow(c, o.Beta)
	if o.Alpha == 1 && a.ColStride == 1 {
		simd.AddRows(c, a.Data[:a.Cols], b.Data[j:], b.RowStride)
	} else {
		s := microkernel.ScratchOf[T]()
		coef := microkernel.Resize(&s.BufA, a.Cols)
		for i := range coef {
			coef[i] = o.Alpha * a.Data[i*a.ColStride]
		}
		simd.AddRows(c, coef, b.Data[j:], b.RowStride)
		s.Release()
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
	s := microkernel.ScratchOf[T]()
	defer s.Release()
	x := b.Data[:min(a.Cols, len(b.Data))]
	if b.RowStride != 1 {
		x = microkernel.Resize(&s.BufB, a.Cols)
		for i := range x {
			x[i] = b.Data[i*b.RowStride]
		}
	}
	y := microkernel.Resize(&s.BufA, c.Rows)
	if a.ColStride == 1 {
		dotRows(y, a, x)
	} else {
		// Columns of A are contiguous: the product is a sum of columns.
		rowTimesMatrix(y, Matrix[T]{x, 1, len(x), len(x), 1}, a.T(), Options[T]{Alpha: 1})
	}
	for i, v := range y {
		p := &c.Data[i*c.RowStride]
		v *= o.Alpha
		if o.Beta != 0 {
			v += o.Beta * *p
		}
		*p = v
	}
	finish(c, o)
}

// dotRows computes the dot products of the rows of a, which are contiguous, with x.
func dotRows[T simd.Float](dst []T, a Matrix[T], x []T) {
	if len(dst)*len(x) < parallelWork {
		simd.DotRows(dst, a.Data, a.RowStride, x)
		return
	}
	parallel.For(len(dst), vectorGrain(len(x)), func(lo, hi int) {
		simd.DotRows(dst[lo:hi], a.Data[lo*a.RowStride:], a.RowStride, x)
	})
}
