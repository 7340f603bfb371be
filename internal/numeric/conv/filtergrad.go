package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// FilterGrad computes df, the gradient of the filter, from the input x and dy, the gradient of the
// output. If add is set, it adds to df.
func FilterGrad[T simd.Float](s *Shape, df, x, dy []T, add bool) {
	s.check(len(x), len(df), len(dy))
	switch {
	case s.filter() == 0:
	case s.outputs() == 0:
		if !add {
			clear(df[:s.filter()])
		}
	case s.pointwise():
		rows := s.Batch * s.pixels()
		for g := range s.groups() {
			gemm.Mul(channels(df, s.groupIn(), s.OutC, g, s), channels(x, rows, s.InC, g, s).T(),
				channels(dy, rows, s.OutC, g, s), (&Epilogue[T]{Add: add}).options(0))
		}
	case s.pixels() < fewPixels:
		filterGradPatches(s, df, x, dy, add)
	default:
		filterGradDirect(microkernel.Of[T](), s, df, x, dy, add)
	}
}

// fewPixels is the number of outputs of an image below which a pass over the filter's gradient
// costs too much.
const fewPixels = 32

// filterGradient is a running gradient, the body of a parallel loop over parts of the batch. Each
// part accumulates its own gradient.
//
// The gradient of one filter element is a matrix of inC rows and outC columns, for each group of
// channels. It is the product of the transposed input pixels and the gradients of their outputs.
// With few channels, this matrix has too few rows for a tile. In that case a whole row of the
// filter is computed as one matrix, and images are copied with zeros on both sides.
type filterGradient[T simd.Float] struct {
	source[T]
	dy    []T
	kern  *microkernel.Kernel[T]
	sums  [][]T                     // one per part
	extra []*microkernel.Scratch[T] // memory of all sums except the first
	rows  int                       // output rows of a chunk
	add   bool                      // add to the old value of the first sum
}

var filterGradients microkernel.Pool

func (g *filterGradient[T]) release() {
	clear(g.sums)
	clear(g.extra)
	*g = filterGradient[T]{sums: g.sums[:0], extra: g.extra[:0]}
	microkernel.Put[filterGradient[T], T](&filterGradients, g)
}

func filterGradDirect[T simd.Float](kern *microkernel.Kernel[T], s *Shape, df, x, dy []T, add bool) {
	size := int(unsafe.Sizeof(T(0)))
	g := microkernel.Take[filterGradient[T], T](&filterGradients)
	g.source = source[T]{s.correlate(), x, s.groupIn() < fewChannels && s.DilationW == 1}
	g.dy, g.kern, g.add = dy, kern, add
	// The outputs and inputs of a chunk share the L2 cache.
	g.rows = max(1, chunkBytes/size/(s.OutW*s.OutC+s.StrideH*s.InW*s.InC))
	g.rows = min(g.rows, s.OutH, max(1, microkernel.MaxSteps/s.OutW))
	g.rows = ceilDiv(s.OutH, ceilDiv(s.OutH, g.rows))
	parts := 1
	if s.products() > blockWork {
		parts = min(s.Batch, parallel.Threads())
	}
	df = df[:s.filter()]
	g.sums = append(g.sums, df)
	for range parts - 1 {
		e := microkernel.ScratchOf[T]()
		g.extra = append(g.extra, e)
		g.sums = append(g.sums, microkernel.Resize(&e.BufC, len(df)))
	}
	parallel.Run(parts, 1, g)
	for i, e := range g.extra {
		simd.Add(df, df, g.sums[i+1])
		e.Release()
	}
	g.release()
}

func (g *filterGradient[T]) Range(lo, hi int) {
	s := microkernel.ScratchOf[T]()
	for i := lo; i < hi; i++ {
		first, end := g.images*i/len(g.sums), g.images*(i+1)/len(g.sums)
		for image := first; image < end; image++ {
			for oy := 0; oy < g.outH; oy += g.rows {
				for group := range g.groups {
					g.chunk(s, g.sums[i], image, oy, group, image > first || oy > 0 || g.add && i == 0)
				}
			}
		}
	}
	s.Release()
}

// chunk computes the gradient of a group's filter from the output rows of an image that start at
// oy. It sets the sum, or adds to it if add is set.
func (g *filterGradient[T]) chunk(s *microkernel.Scratch[T], sum []T, image, oy, group int, add bool) {
	size := int(unsafe.Sizeof(T(0)))
	end := min(oy+g.rows, g.outH)
	v := g.view(s, image, oy, end, group)
	dy := g.dy[(image*g.outH+oy)*g.outW*g.outs():][:(end-oy)*g.outW*g.outs()][group*g.outC:]
	sum = sum[group*g.outC:]

	a := &s.Args
	a.RowA, a.StepA = size, g.strideW*v.pixel*size
	a.RowC = g.outs() * size
	a.TileB, a.TileBias, a.Flags = 0, 0, 0
	if add {
		a.Flags = microkernel.Add
	}
	a.StepAhead = 0
	if g.groups == 1 {
		// Meanwhile, prefetch the outputs of the next chunk, which follow.
		n, tiles := (end-oy)*g.outW, g.filterH*g.filterW*ceilDiv(g.inC, g.kern.Rows)
		if g.copied {
			tiles = g.filterH * ceilDiv(g.filterW*g.inC, g.kern.Rows)
		}
		bytes := n * g.outC * size
		a.Prefetch(unsafe.Pointer(&dy[0]), bytes, bytes, n*tiles*ceilDiv(g.outC, g.kern.Width()))
	}
	for col := 0; col < g.outC; col += g.kern.Width() {
		vecs, last := g.kern.VecsFor(min(g.kern.Width(), g.outC-col))
		a.Last = last
		b, step := dy[col:], g.outs()
		if last < g.kern.Lanes {
			step = vecs * g.kern.Lanes
			b = microkernel.Resize(&s.BufB, (end-oy)*g.outW*step)
			g.kern.PackRows(b, dy[col:], step, g.outs(), (end-oy)*g.outW, g.outC-col)
		}
		a.StepB = step * size
		g.panel(a, vecs, &v, b, sum[col:], oy, end)
	}
}

// panel computes the gradients of a group of output channels from the output rows [oy, end). b
// holds the gradients of these rows.
func (g *filterGradient[T]) panel(a *microkernel.Args, vecs int, v *view[T], b, sum []T, oy, end int) {
	size := int(unsafe.Sizeof(T(0)))
	n, cols := g.inC, g.filterW
	if g.copied {
		n, cols = g.filterW*g.inC, 1
	}
	for h := range g.filterH {
		y0, y1 := inside(h*g.dilationH-g.padTop, g.strideH, g.outH, g.inH)
		y0, y1 = max(y0, oy), min(y1, end)
		for w := range cols {
			x0, x1 := inside(w*g.dilationW-v.padLeft, g.strideW, g.outW, v.width)
			c := sum[(h*cols+w)*n*g.outs():]
			switch {
			case y0 < y1 && x0 < x1:
				a.K, a.Outer = x1-x0, y1-y0
				a.NextA, a.NextB = g.strideH*v.stride*size-a.K*a.StepA, (g.outW-a.K)*a.StepB
				g.column(a, vecs, n, v.data[g.at(v, y0, h, x0, w):], b[((y0-oy)*g.outW+x0)*a.StepB/size:], c)
			case a.Flags&microkernel.Add == 0:
				for i := range n {
					clear(c[i*g.outs():][:(vecs-1)*g.kern.Lanes+a.Last])
				}
			}
		}
	}
}

// column computes n rows of the gradient, as a matrix of n rows, tile by tile.
func (g *filterGradient[T]) column(a *microkernel.Args, vecs, n int, x, b, sum []T) {
	tiles := ceilDiv(n, g.kern.Rows)
	low, higher := n/tiles, n%tiles
	most := max(1, microkernel.MaxSteps/(a.K*a.Outer))
	a.B = unsafe.Pointer(&b[0])
	row := 0
	for i := 0; i < tiles; i += a.Tiles {
		height, count := low, tiles-i
		if i < higher {
			height, count = low+1, higher-i
		}
		a.Tiles = min(most, count)
		a.TileA, a.TileC = height*a.RowA, height*a.RowC
		a.A, a.C = unsafe.Pointer(&x[row]), unsafe.Pointer(&sum[row*g.outs()])
		a.ContinuePrefetch()
		g.kern.Run(a, height, vecs)
		row += height * a.Tiles
	}
}
