package gemm

import (
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

const (
	// A product with fewer multiply-adds runs on the caller, because it is done before another core
	// has started.
	parallelWork = 500_000
	// A large product is divided into more parts than threads, so that a preempted core delays only
	// its current part. Each part has at least partWork multiply-adds.
	partWork       = 8 << 20
	partsPerThread = 3
	// With a smaller k, storing C dominates the time, and another core would have to pass its part
	// back.
	storedDepth = 32
)

var products microkernel.Pool

func (p *product[T]) release() {
	*p = product[T]{}
	microkernel.Put[product[T], T](&products, p)
}

// mulBlocks is Mul for matrices that are large enough for panels. C has contiguous rows.
func mulBlocks[T simd.Float](kern *microkernel.Kernel[T], c, a, b Matrix[T], o Options[T]) {
	if o.Beta != 0 {
		scale(c, o.Beta)
	}
	p := microkernel.Take[product[T], T](&products)
	defer p.release()
	p.deep = kern.Deep
	if wide := kern.Wide(); wide != nil && (p.deep || a.Cols <= wideDepth) && wideFits(c.Cols, wide) {
		kern = wide
	}
	p.c, p.a, p.b, p.o, p.kern = c, a, b, o, kern
	p.partM, p.partN, p.stepN = 1, 1, c.Cols
	if work, threads := c.Rows*c.Cols*a.Cols, parallel.Threads(); threads > 1 && work >= parallelWork*max(1, storedDepth/a.Cols) {
		p.split(threads, min(max(1, work/partWork/threads), partsPerThread)*threads)
	}
	parallel.Run(p.partM*p.partN, 1, p)
}

// wideDepth is the largest k of products with wide tiles, unless the kernels are Deep. Up to it,
// their panels of B fit into the L1 cache.
const wideDepth = 192

// wideFits reports whether panels of wide tiles leave no columns, few columns, or nearly a whole
// tile.
func wideFits[T simd.Float](cols int, wide *microkernel.Kernel[T]) bool {
	rest := cols % wide.Width()
	return rest == 0 || cols >= 4*wide.Width() || cols > wide.Width() && rest > 2*wide.Lanes
}

// split chooses the grid of about parts blocks with the least total work. The work includes the
// copying that each block does for itself.
func (p *product[T]) split(threads, parts int) {
	m, n, width := p.c.Rows, p.c.Cols, p.kern.Width()
	best := -1
	for partM := 1; partM <= min(parts, ceilDiv(m, p.kern.Rows)); partM++ {
		rows := ceilDiv(m, partM)
		// Round up to whole panels, or to whole vectors if that would be too coarse.
		step := ceilDiv(n, max(1, parts/partM))
		if step > 2*width {
			step = ceilDiv(step, width) * width
		} else {
			step = ceilDiv(step, p.kern.Lanes) * p.kern.Lanes
		}
		partN := ceilDiv(n, step)
		rounds := ceilDiv(partM*partN, threads)
		if cost := rounds * p.cost(rows, min(n, step)); best < 0 || cost < best {
			best, p.partM, p.partN, p.stepN = cost, partM, partN, step
		}
	}
}

// cost estimates the time of a block, in cycles per step of k on a machine with two multiply-add
// units, times 8.
func (p *product[T]) cost(rows, cols int) int {
	width, lanes := p.kern.Width(), p.kern.Lanes
	cost := cols / width * rows * 8
	switch rest := cols % width; {
	case rest > lanes:
		cost += rows * 8
	case rest > 0:
		cost += rows*5 + 8
	}
	switch {
	case p.b.ColStride != 1:
		cost += cols * 6
	case rows > directRows || p.a.Cols*cols > directSize:
		cost += cols * 2
	}
	return cost
}
