// Package microkernel implements the innermost loops of matrix products and convolutions. A
// micro-kernel keeps a tile of the result in registers while it iterates over k. The package also
// copies operands into panels that the micro-kernels read in order. Packages gemm and conv choose
// blocks that fit into the caches and call it.
//
// The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008), except that the left operand is usually read in place. Its elements are broadcast one by
// one, so their distance does not matter.
package microkernel

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Args describes a call of a micro-kernel. For a tile of rows i and vectors of columns j, it
// computes
//
//	C[i][j] = sum over q < Outer, k < K of A[q][i][k] * B[q][k][j]
//
// where A advances by StepA and B by StepB bytes with each k, and additionally by NextA and NextB
// after each q. Rows of A are RowA bytes apart, rows of C RowC bytes. It repeats this for Tiles
// tiles, and A, B, C and Bias advance by TileA, TileB, TileC and TileBias bytes from one to the
// next. A call should not exceed MaxSteps, which takes about 20 µs. The assembly depends on the
// layout.
type Args struct {
	A, B, C      unsafe.Pointer
	RowA         int
	StepA, StepB int
	K, Outer     int // both at least 1
	NextA, NextB int
	RowC         int
	Last         int // columns of C in the last vector; B has whole vectors
	Flags        Flags
	Bias         unsafe.Pointer // one element per column
	Tiles        int
	TileA, TileB int
	TileC        int
	TileBias     int

	// Prefetching for later calls into the L2 cache: the line at Ahead, which may be any address,
	// with each k. The address advances by StepAhead bytes with each k, and by TileAhead from the
	// start of one tile to the start of the next.
	Ahead                uintptr
	StepAhead, TileAhead int
}

// Prefetch makes the following calls prefetch n bytes, starting offset bytes after p, evenly over
// the given number of steps.
func (g *Args) Prefetch(p unsafe.Pointer, offset, n, steps int) {
	g.Ahead, g.StepAhead = uintptr(p)+uintptr(offset), (n+steps-1)/max(1, steps)
}

// ContinuePrefetch sets TileAhead to continue the prefetching of Prefetch across tiles.
func (g *Args) ContinuePrefetch() { g.TileAhead = g.StepAhead * g.K * g.Outer }

// MaxSteps is the limit of Tiles*Outer*K of a call.
const MaxSteps = 8 << 10

// Flags are the operations on a tile before it is stored, in this order.
type Flags int

// The operations on a tile.
const (
	Add  Flags = 1 << iota // add the old C
	Bias                   // add the bias
	Relu                   // replace negative elements by zero
)

// Kernel is the set of micro-kernels for a level and element type. Tiles have up to Rows rows and
// Vecs vectors of Lanes elements. Wide tiles have up to WideRows rows and WideVecs vectors;
// WideRows is 0 if there are none.
type Kernel[T simd.Float] struct {
	Rows, Vecs, Lanes  int
	WideRows, WideVecs int

	// Deep means that wide tiles are better for any k, and that panels of B are better packed if A
	// is transposed. It depends on the processor.
	Deep bool

	wide        *Kernel[T]
	run         [15][5]func(args *byte) // indexed by rows and vectors
	packRows    [5]func(dst, src *T, dstRow, srcRow, rows, last int)
	packColumns func(dst, src *T, dstRow, srcRow, rows, k int)
}

// Of returns the kernels for the current level.
func Of[T simd.Float]() *Kernel[T] {
	l := simd.Current()
	if unsafe.Sizeof(T(0)) == 4 {
		return (*Kernel[T])(unsafe.Pointer(&kernels32[l]))
	}
	return (*Kernel[T])(unsafe.Pointer(&kernels64[l]))
}

// Wide returns the micro-kernels whose tiles have WideVecs vectors and WideRows rows, or nil if
// there are none. They load less per product than tiles of two vectors, but read more of B per step
// of k.
func (k *Kernel[T]) Wide() *Kernel[T] { return k.wide }

// widen sets the result of Wide.
func (k *Kernel[T]) widen() {
	w := *k
	w.Rows, w.Vecs = k.WideRows, k.WideVecs
	k.wide = &w
}

// Run computes tiles of the given size. The call is indirect, so args should be on the heap: use a
// field of a Scratch.
func (k *Kernel[T]) Run(args *Args, rows, vecs int) {
	if args.Ahead == 0 {
		args.Ahead = uintptr(args.A)
	}
	k.run[rows][vecs]((*byte)(unsafe.Pointer(args)))
	args.Ahead += uintptr(args.Tiles * args.TileAhead)
}

// Width returns the number of columns of the widest tile with Rows rows.
func (k *Kernel[T]) Width() int { return k.Vecs * k.Lanes }

// VecsFor returns the number of vectors that hold cols columns, and the number of columns in the
// last one.
func (k *Kernel[T]) VecsFor(cols int) (vecs, last int) {
	vecs = (cols + k.Lanes - 1) / k.Lanes
	return vecs, cols - (vecs-1)*k.Lanes
}

// PackRows copies rows of cols elements, up to 4 vectors, from src to dst and pads the last vector
// with zeros. dstRow and srcRow are the distances between rows, in elements.
func (k *Kernel[T]) PackRows(dst, src []T, dstRow, srcRow, rows, cols int) {
	vecs, last := k.VecsFor(cols)
	_ = dst[(rows-1)*dstRow+vecs*k.Lanes-1]
	_ = src[(rows-1)*srcRow+cols-1]
	size := int(unsafe.Sizeof(T(0)))
	const most = 4 << 10 // rows that take a few microseconds
	for i := 0; i < rows; i += most {
		k.packRows[vecs](&dst[i*dstRow], &src[i*srcRow], dstRow*size, srcRow*size, min(most, rows-i), last)
	}
}

// PackColumns transposes rows of n elements, up to as many rows as a vector has elements. Element j
// of row i becomes dst[j*dstRow+i], padded with zeros to a whole vector. Distances are in elements.
func (k *Kernel[T]) PackColumns(dst, src []T, dstRow, srcRow, rows, n int) {
	_ = dst[(n-1)*dstRow+k.Lanes-1]
	_ = src[(rows-1)*srcRow+n-1]
	size := int(unsafe.Sizeof(T(0)))
	k.packColumns(&dst[0], &src[0], dstRow*size, srcRow*size, rows, n)
}
