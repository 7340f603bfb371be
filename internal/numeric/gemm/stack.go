package gemm

import (
	"fmt"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Stack is a sequence of matrices of one shape in Data, Step elements apart. Matrix is a view of
// the first one.
type Stack[T any] struct {
	Matrix[T]
	Step int
}

// last returns the last of n matrices.
func (s Stack[T]) last(n int) Matrix[T] {
	m := s.Matrix
	m.Data = m.Data[(n-1)*s.Step:]
	return m
}

const (
	// multiply-adds of a product whose setup takes a considerable part of the time.
	smallProduct = 32 << 10
	// elements of matrices that are multiplied together; they stay in the L1 cache.
	stackSize = 8 << 10
)

// Stackable reports whether products of the given size are faster if MulStack computes many of
// them: the matrices are neither large nor vectors.
func Stackable(rows, cols, k int) bool {
	return rows > 1 && cols > 1 && k > 0 && rows*cols*k <= smallProduct
}

// MulStack computes C = A*B for the first n matrices of three stacks, on the caller. Rows of C must
// be contiguous, and the products must be Stackable.
func MulStack[T simd.Float](c, a, b Stack[T], n int) {
	rows, cols, k := c.Rows, c.Cols, a.Cols
	if c.ColStride != 1 || !Stackable(rows, cols, k) {
		panic(fmt.Sprintf("gemm: no stack of products: %v of depth %d", c.Matrix, k))
	}
	check(c.last(n), a.last(n), b.last(n), nil)
	s := microkernel.ScratchOf[T]()
	w := stacked[T]{s: s, kern: microkernel.Of[T](), c: c, a: a, b: b}
	together := max(1, min(stackSize/(rows*k+k*cols+rows*cols), microkernel.MaxSteps/k))
	for lo := 0; lo < n; lo += together {
		w.multiply(lo, min(together, n-lo))
	}
	s.Release()
}

// stacked is a running MulStack. The same rows and columns of all matrices are the tiles of one
// call.
type stacked[T simd.Float] struct {
	s       *microkernel.Scratch[T]
	kern    *microkernel.Kernel[T]
	c, a, b Stack[T]
}

// multiply computes n products, starting with product lo.
func (w *stacked[T]) multiply(lo, n int) {
	g, size := &w.s.Args, int(unsafe.Sizeof(T(0)))
	g.K, g.Outer, g.Tiles = w.a.Cols, 1, n
	g.RowA, g.StepA, g.TileA = w.a.RowStride*size, w.a.ColStride*size, w.a.Step*size
	g.RowC, g.TileC = w.c.RowStride*size, w.c.Step*size
	tiles := ceilDiv(w.c.Rows, w.kern.Rows)
	for col := 0; col < w.c.Cols; col += w.kern.Width() {
		vecs, last := w.kern.VecsFor(min(w.kern.Width(), w.c.Cols-col))
		g.Last = last
		w.setB(lo, n, col, vecs)
		for t := range tiles {
			row, end := w.c.Rows*t/tiles, w.c.Rows*(t+1)/tiles
			g.A = unsafe.Pointer(&w.a.Data[lo*w.a.Step+w.a.at(row, 0)])
			g.C = unsafe.Pointer(&w.c.Data[lo*w.c.Step+w.c.at(row, col)])
			w.kern.Run(g, end-row, vecs)
		}
	}
}

// setB sets B to the vectors from a column on, of n matrices. They are read in place if whole
// vectors are available.
func (w *stacked[T]) setB(lo, n, col, vecs int) {
	g, size, depth := &w.s.Args, int(unsafe.Sizeof(T(0))), w.a.Cols
	width := vecs * w.kern.Lanes
	if w.b.ColStride == 1 && (lo+n-1)*w.b.Step+w.b.at(depth-1, col)+width <= len(w.b.Data) {
		g.B, g.StepB, g.TileB = unsafe.Pointer(&w.b.Data[lo*w.b.Step+col]), w.b.RowStride*size, w.b.Step*size
		return
	}
	g.StepB, g.TileB = width*size, depth*width*size
	buf := microkernel.Resize(&w.s.BufB, n*depth*width)
	g.B = unsafe.Pointer(&buf[0])
	cols := min(width, w.c.Cols-col)
	for i := range n {
		dst, src := buf[i*depth*width:], w.b.Data[(lo+i)*w.b.Step+w.b.at(0, col):]
		if w.b.ColStride == 1 {
			w.kern.PackRows(dst, src, width, w.b.RowStride, depth, cols)
			continue
		}
		for v := 0; v < cols; v += w.kern.Lanes {
			w.kern.PackColumns(dst[v:], src[v*w.b.ColStride:], width, w.b.ColStride, min(w.kern.Lanes, cols-v), depth)
		}
	}
}
