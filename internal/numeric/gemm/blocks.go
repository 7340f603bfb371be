package gemm

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Block sizes, in elements of float32. A panel of B of depth blockK and the width of a tile stays
// in the L1 cache. A block of B of blockK x blockN and a block of A of blockM x blockK stay in the
// L2 cache.
const (
	blockK     = 384
	blockN     = 640
	blockM     = 224
	deepBlockK = 512 // replaces blockK, and deepBlockN replaces blockN, for products with k >= deep
	deepBlockN = 512
	deep       = 1024

	// B is read in place, and not copied to panels, if a block has few rows and B is small.
	directRows           = 160
	directRowsTransposed = 1024 // with A transposed, which makes packing relatively more expensive
	directSize           = 512 << 10

	pacedWork = 1 << 20 // multiply-adds between checks of the clock

	pageSize = 4096
	// vectors per step of a tile below which a new page in each step dominates the time.
	fewProducts = 12

	flatSize = 6 << 10 // size of a B that fits into the L1 cache
)

// product is a running multiplication. C has contiguous rows. It is the body of a parallel loop
// over the cells of a grid of partM x partN blocks.
type product[T simd.Float] struct {
	c, a, b      Matrix[T]
	o            Options[T]
	kern         *microkernel.Kernel[T]
	deep         bool // the Deep field of the current kernels
	partM, partN int
	stepN        int // columns of a block
}

func (p *product[T]) Range(lo, hi int) {
	s := microkernel.ScratchOf[T]()
	for i := lo; i < hi; i++ {
		row, col := i/p.partN, i%p.partN
		p.block(s, p.c.Rows*row/p.partM, p.c.Rows*(row+1)/p.partM, col*p.stepN, min(p.c.Cols, (col+1)*p.stepN))
	}
	s.Release()
}

// block computes the rows [m0, m1) and columns [n0, n1) of C.
func (p *product[T]) block(s *microkernel.Scratch[T], m0, m1, n0, n1 int) {
	w := worker[T]{product: p, Scratch: s, m0: m0, m1: m1}
	w.tiles = ceilDiv(m1-m0, p.kern.Rows)
	k := p.a.Cols
	w.packA = p.mustPackA(m1-m0, n1-n0)
	w.direct = p.o.Alpha == 1 && p.b.ColStride == 1 && k*(n1-n0) <= directSize &&
		(m1-m0 <= directRows || p.a.ColStride != 1 && !p.deep && m1-m0 <= directRowsTransposed)
	depth, width := blockK, blockN
	switch {
	case w.direct:
		depth, width = deepBlockK, n1-n0
	case k >= deep:
		depth, width = deepBlockK, deepBlockN
	}
	slices := ceilDiv(k, depth)
	for j := n0; j < n1; j += width {
		w.n0, w.n1 = j, min(n1, j+width)
		for i := range slices {
			w.k0, w.k1 = k*i/slices, k*(i+1)/slices
			w.slice()
		}
	}
}

// mustPackA reports whether the rows of A have to be copied. If a multiple of the page size
// separates them, they map to the same few cache lines. If tiles are small, nearly every step would
// touch a new page.
func (p *product[T]) mustPackA(m, n int) bool {
	stride := max(p.a.RowStride, p.a.ColStride) * int(unsafe.Sizeof(T(0)))
	if p.a.ColStride != 1 && p.kern.Rows*p.kern.Vecs <= fewProducts && stride >= pageSize/4 {
		return m > 64 && n > 64 && p.a.Cols > 64
	}
	if stride%pageSize != 0 {
		return false
	}
	if p.a.ColStride == 1 {
		return n > 128 && p.a.Cols >= 16
	}
	return m > 64 && n > 64
}

// worker computes one block. The fields describe the next part of the block.
type worker[T simd.Float] struct {
	*product[T]
	*microkernel.Scratch[T]
	m0, m1, n0, n1, k0, k1 int

	tiles      int  // tiles from m0 to m1
	packA      bool // A is copied to panels
	packedFrom int  // first tile of the panels
	direct     bool // B is read in place

	pace parallel.Yielder
}

func (w *worker[T]) size() int { return int(unsafe.Sizeof(T(0))) }

// tileRow returns the first row of tile i. Tile heights differ by at most one, and higher tiles
// come first.
func (w *worker[T]) tileRow(i int) int {
	m := w.m1 - w.m0
	return w.m0 + i*(m/w.tiles) + min(i, m%w.tiles)
}

// sameHeight returns the end of the run of tiles, from t on, with the height of t.
func (w *worker[T]) sameHeight(t, end int) int {
	if high := (w.m1 - w.m0) % w.tiles; t < high {
		return min(end, high)
	}
	return end
}

// slice adds the products over [k0, k1) to C, for the columns [n0, n1).
func (w *worker[T]) slice() {
	w.packPanels()
	parts := ceilDiv(w.tiles*w.kern.Rows, blockM)
	for i := range parts {
		t0, t1 := w.tiles*i/parts, w.tiles*(i+1)/parts
		if w.packA {
			w.packTiles(t0, t1)
		}
		w.prepare(t0)
		w.fetchRows(t0, t1)
		width := w.kern.Width()
		long := (t1-t0)*w.kern.Rows*(w.k1-w.k0)*width >= pacedWork
		j := w.n0
		if whole := (w.n1 - w.n0) / width; whole > 1 && (w.k1-w.k0)*whole*width <= flatSize {
			w.byRows(t0, t1, whole)
			j += whole * width
		}
		for ; j < w.n1; j += width {
			w.panel(j, t0, t1)
			if long {
				w.pace.MaybeYield()
			}
		}
	}
}

// prepare sets the arguments that all calls for tiles of A packed from t0 on share.
func (w *worker[T]) prepare(t0 int) {
	g := &w.Args
	g.K, g.Outer = w.k1-w.k0, 1
	g.RowC = w.c.RowStride * w.size()
	if w.packA {
		g.RowA, g.StepA = w.size(), w.tileStride()*w.size()
		w.packedFrom = t0
	} else {
		g.RowA, g.StepA = w.a.RowStride*w.size(), w.a.ColStride*w.size()
	}
	w.setFlags()
}

// fetchRows makes the micro-kernels prefetch the rows of A that follow the tiles [t0, t1), if rows
// are contiguous.
func (w *worker[T]) fetchRows(t0, t1 int) {
	g := &w.Args
	g.StepAhead, g.TileAhead = 0, 0
	if t1 == w.tiles || w.a.ColStride != 1 {
		return
	}
	bytes := (w.tileRow(t1) - w.tileRow(t0)) * w.a.RowStride * w.size()
	g.Prefetch(unsafe.Pointer(&w.a.Data[w.a.at(w.tileRow(t1), w.k0)]), 0, bytes, (t1-t0)*g.K*ceilDiv(w.n1-w.n0, w.kern.Width()))
	g.ContinuePrefetch()
}

// panel computes the tiles [t0, t1) of the panel from column j on, one below the other.
func (w *worker[T]) panel(j, t0, t1 int) {
	g := &w.Args
	vecs, last := w.kern.VecsFor(min(w.kern.Width(), w.n1-j))
	g.Last = last
	w.setB(j, vecs)
	g.TileB, g.TileBias = 0, 0
	for t := t0; t < t1; {
		rows := w.tileRow(t+1) - w.tileRow(t)
		g.Tiles = min(w.sameHeight(t, t1)-t, max(1, microkernel.MaxSteps/g.K))
		g.TileA, g.TileC = rows*w.a.RowStride*w.size(), rows*g.RowC
		if w.packA {
			g.TileA = w.tileStride() * g.K * w.size()
		}
		w.setA(t)
		g.C = unsafe.Pointer(&w.c.Data[w.c.at(w.tileRow(t), j)])
		w.kern.Run(g, rows, vecs)
		t += g.Tiles
	}
}

// byRows computes the tiles [t0, t1) of the given number of whole panels, one beside the other.
// This order is better if all of B stays in the L1 cache.
func (w *worker[T]) byRows(t0, t1, panels int) {
	g := &w.Args
	width := w.kern.Width()
	g.Last = w.kern.Lanes
	g.TileA, g.TileC, g.TileBias = 0, width*w.size(), width*w.size()
	g.TileB = width * w.size()
	if !w.inPlace(w.n0) {
		g.TileB *= g.K
	}
	most := max(1, microkernel.MaxSteps/g.K)
	for t := t0; t < t1; t++ {
		i := w.tileRow(t)
		w.setA(t)
		for p := 0; p < panels; p += most {
			j := w.n0 + p*width
			w.setB(j, w.kern.Vecs)
			g.C = unsafe.Pointer(&w.c.Data[w.c.at(i, j)])
			g.Tiles = min(most, panels-p)
			w.kern.Run(g, w.tileRow(t+1)-i, w.kern.Vecs)
		}
	}
}

// setA sets A to tile t.
func (w *worker[T]) setA(t int) {
	if w.packA {
		w.Args.A = unsafe.Pointer(&w.BufA[(t-w.packedFrom)*w.tileStride()*w.Args.K])
	} else {
		w.Args.A = unsafe.Pointer(&w.a.Data[w.a.at(w.tileRow(t), w.k0)])
	}
}

// setB sets B to the panel from column j on, and the bias to its part.
func (w *worker[T]) setB(j, vecs int) {
	g := &w.Args
	if w.inPlace(j) {
		g.B, g.StepB = unsafe.Pointer(&w.b.Data[w.b.at(w.k0, j)]), w.b.RowStride*w.size()
	} else {
		g.B, g.StepB = unsafe.Pointer(&w.BufB[w.panelAt(j)]), vecs*w.kern.Lanes*w.size()
	}
	if w.o.Bias != nil {
		g.Bias = unsafe.Pointer(&w.o.Bias[j])
	}
}

// setFlags sets the operations at the end of a tile. The first slice of k overwrites C unless there
// is a Beta. The last slice adds the bias and rectifies.
func (w *worker[T]) setFlags() {
	g := &w.Args
	g.Flags = 0
	if w.k0 > 0 || w.o.Beta != 0 {
		g.Flags |= microkernel.Add
	}
	if w.k1 < w.a.Cols {
		return
	}
	if w.o.Bias != nil {
		g.Flags |= microkernel.Bias
	}
	if w.o.Relu {
		g.Flags |= microkernel.Relu
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
