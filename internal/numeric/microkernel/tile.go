// Package microkernel has the innermost loops of matrix products and convolutions: micro-kernels
// that keep a tile of the result in registers while they go through k, and the copies of operands
// into panels that the micro-kernels read in order. Drivers (packages gemm and conv) choose blocks
// that fit the caches and call these.
//
// The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (2008), with the difference that the left operand is usually read in place: its elements are
// broadcast one by one, so their distance does not matter.
package microkernel

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Args is a call of a micro-kernel. It computes, for a tile of some rows i and vectors of columns
// j,
//
//	C[i][j] = sum over q < Outer, k < K of A[q][i][k] * B[q][k][j]
//
// where A advances by StepA and B by StepB bytes with each k, and by NextA and NextB more after
// each q. Rows of A are RowA bytes apart, rows of C RowC bytes. It does so for Tiles tiles; from
// one to the next, A, B, C and Bias advance by TileA, TileB, TileC and TileBias bytes. A call
// should take no more than some 20 µs: MaxSteps. The assembly knows the layout.
type Args struct {
	A, B, C      unsafe.Pointer
	RowA         int
	StepA, StepB int
	K, Outer     int // both at least 1
	NextA, NextB int
	RowC         int
	Last         int // columns of the last vector that C has; B has whole vectors
	Flags        Flags
	Bias         unsafe.Pointer // one element per column
	Tiles        int
	TileA, TileB int
	TileC        int
	TileBias     int

	// What later calls need is asked for, for the second-level cache: with each k the line at
	// Ahead, which may be any address. It advances by StepAhead bytes with each k, and from where a
	// tile began by TileAhead to the next.
	Ahead                uintptr
	StepAhead, TileAhead int
}

// Fetch has the following calls ask for n bytes from offset bytes behind p on, evenly over so many
// steps.
func (g *Args) Fetch(p unsafe.Pointer, offset, n, steps int) {
	g.Ahead, g.StepAhead = uintptr(p)+uintptr(offset), (n+steps-1)/max(1, steps)
}

// Even sets TileAhead for what Fetch asked for.
func (g *Args) Even() { g.TileAhead = g.StepAhead * g.K * g.Outer }

// MaxSteps bounds Tiles*Outer*K of a call.
const MaxSteps = 8 << 10

// Flags say what happens to a tile before it is stored, in this order.
type Flags int

// The flags.
const (
	Add  Flags = 1 << iota // add the old C
	Bias                   // add the bias
	Relu                   // replace negative elements by zero
)

// Kernel is the set of micro-kernels for a level and element type. Tiles have up to Rows rows and
// Vecs vectors of Lanes elements; up to WideRows rows and WideVecs vectors where WideRows is not 0.
type Kernel[T simd.Float] struct {
	Rows, Vecs, Lanes  int
	WideRows, WideVecs int

	// Deep says that wide tiles are the better ones however large k is, and so are panels of B that
	// were copied where A is transposed. It depends on the processor.
	Deep bool

	wide        *Kernel[T]
	run         [15][5]func(args *byte) // by rows and vectors
	packRows    [5]func(dst, src *T, dstRow, srcRow, rows, last int)
	packColumns func(dst, src *T, dstRow, srcRow, rows, k int)
}

// Of returns the kernels for the level in use.
func Of[T simd.Float]() *Kernel[T] {
	l := simd.Current()
	if unsafe.Sizeof(T(0)) == 4 {
		return (*Kernel[T])(unsafe.Pointer(&kernels32[l]))
	}
	return (*Kernel[T])(unsafe.Pointer(&kernels64[l]))
}

// Wide returns the micro-kernels whose tiles have WideVecs vectors and WideRows rows, or nil if
// there are none. They load less for each product than those of two vectors, but more of B between
// one k and the next.
func (k *Kernel[T]) Wide() *Kernel[T] { return k.wide }

// widen makes the kernels that Wide returns.
func (k *Kernel[T]) widen() {
	w := *k
	w.Rows, w.Vecs = k.WideRows, k.WideVecs
	k.wide = &w
}

// Run computes tiles of the given size. Args should be on the heap, for the call is indirect: a
// field of reused scratch space.
func (k *Kernel[T]) Run(args *Args, rows, vecs int) {
	if args.Ahead == 0 {
		args.Ahead = uintptr(args.A)
	}
	k.run[rows][vecs]((*byte)(unsafe.Pointer(args)))
	args.Ahead += uintptr(args.Tiles * args.TileAhead)
}

// Width is the number of columns of the widest tile with Rows rows.
func (k *Kernel[T]) Width() int { return k.Vecs * k.Lanes }

// VecsFor is the number of vectors that hold cols columns, and the number of columns in the last of
// them.
func (k *Kernel[T]) VecsFor(cols int) (vecs, last int) {
	vecs = (cols + k.Lanes - 1) / k.Lanes
	return vecs, cols - (vecs-1)*k.Lanes
}

// PackRows copies rows of cols elements, up to 4 vectors, from src to dst and fills the last vector
// with zeros. dstRow and srcRow are the distances between rows, in elements.
func (k *Kernel[T]) PackRows(dst, src []T, dstRow, srcRow, rows, cols int) {
	vecs, last := k.VecsFor(cols)
	_ = dst[(rows-1)*dstRow+vecs*k.Lanes-1]
	_ = src[(rows-1)*srcRow+cols-1]
	size := int(unsafe.Sizeof(T(0)))
	const most = 4 << 10 // rows that take some microseconds
	for i := 0; i < rows; i += most {
		k.packRows[vecs](&dst[i*dstRow], &src[i*srcRow], dstRow*size, srcRow*size, min(most, rows-i), last)
	}
}

// PackColumns transposes up to one vector's number of rows of n elements: element j of row i goes
// to dst[j*dstRow+i], and zeros follow up to a whole vector. Distances are in elements.
func (k *Kernel[T]) PackColumns(dst, src []T, dstRow, srcRow, rows, n int) {
	_ = dst[(n-1)*dstRow+k.Lanes-1]
	_ = src[(rows-1)*srcRow+n-1]
	size := int(unsafe.Sizeof(T(0)))
	k.packColumns(&dst[0], &src[0], dstRow*size, srcRow*size, rows, n)
}
