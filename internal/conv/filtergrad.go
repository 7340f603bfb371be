package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/gemm"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/internal/tile"
)

// FilterGrad computes df, the gradient of the filter, from the input x and dy, the gradient of the output.
func FilterGrad[T simd.Float](s *Shape, df, x, dy []T) {
	s.check(len(x), len(df), len(dy))
	switch {
	case s.filter() == 0:
	case s.outputs() == 0:
		clear(df[:s.filter()])
	case s.pointwise():
		gemm.Mul(gemm.Dense(df, s.InC, s.OutC), gemm.Dense(x, s.Batch*s.pixels(), s.InC).T(),
			gemm.Dense(dy, s.Batch*s.pixels(), s.OutC), gemm.Options[T]{})
	case s.pixels() < fewPixels:
		filterGradPatches(s, df, x, dy)
	default:
		filterGradDirect(s, df, x, dy)
	}
}

// fewPixels is the number of outputs of an image below which it is not worth a pass over the filter's gradient.
const fewPixels = 32

// filterGradient is a gradient in progress, the body of a parallel loop over parts of the batch. Each part adds up a
// gradient of its own.
type filterGradient[T simd.Float] struct {
	correlate
	x, dy []T
	kern  *tile.Kernel[T]
	sums  [][]T         // by part
	extra []*scratch[T] // memory of all sums but the first
	rows  int           // output rows of a chunk
}

func filterGradDirect[T simd.Float](s *Shape, df, x, dy []T) {
	size := int(unsafe.Sizeof(T(0)))
	g := filterGradientOf[T]()
	g.correlate = correlate{
		images: s.Batch, inH: s.InH, inW: s.InW, inC: s.InC, outH: s.OutH, outW: s.OutW, outC: s.OutC,
		filterH: s.FilterH, filterW: s.FilterW, strideH: s.StrideH, strideW: s.StrideW,
		dilationH: s.DilationH, dilationW: s.DilationW, padTop: s.PadTop, padLeft: s.PadLeft,
	}
	g.x, g.dy, g.kern = x, dy, tile.Of[T]()
	// A chunk's outputs and inputs share the second-level cache.
	g.rows = max(1, chunkBytes/size/(s.OutW*s.OutC+s.StrideH*s.InW*s.InC))
	g.rows = min(g.rows, s.OutH, max(1, tile.MaxSteps/s.OutW))
	parts := 1
	if s.products() > blockWork {
		parts = min(s.Batch, parallel.Threads())
	}
	df = df[:s.filter()]
	g.sums = append(g.sums, df)
	for range parts - 1 {
		e := scratchOf[T]()
		g.extra = append(g.extra, e)
		g.sums = append(g.sums, room(&e.sum, len(df)))
	}
	parallel.Run(parts, 1, g)
	for i, e := range g.extra {
		simd.Add(df, df, g.sums[i+1])
		e.release()
	}
	g.release()
}

func (g *filterGradient[T]) Range(lo, hi int) {
	s := scratchOf[T]()
	for i := lo; i < hi; i++ {
		first, end := g.images*i/len(g.sums), g.images*(i+1)/len(g.sums)
		for image := first; image < end; image++ {
			for oy := 0; oy < g.outH; oy += g.rows {
				g.chunk(s, g.sums[i], image, oy, image > first || oy > 0)
			}
		}
	}
	s.release()
}

// chunk computes the gradient from some output rows of an image, from oy on, and adds it to the sum or sets the sum.
func (g *filterGradient[T]) chunk(s *scratch[T], sum []T, image, oy int, add bool) {
	size := int(unsafe.Sizeof(T(0)))
	rows := min(g.rows, g.outH-oy)
	// The image is the correlation's input.
	c := correlation[T]{correlate: g.correlate, x: g.x}
	x, stride := c.input(s, image, oy, rows)
	dy := g.dy[(image*g.outH+oy)*g.outW*g.outC:][:rows*g.outW*g.outC]

	a := &s.args
	a.RowA, a.StepA = size, g.strideW*g.inC*size
	a.K, a.Outer = g.outW, rows
	a.NextA, a.NextB = (g.strideH*stride-g.outW*g.strideW*g.inC)*size, 0
	a.RowC = g.outC * size
	a.TileB, a.TileBias, a.Flags = 0, 0, 0
	if add {
		a.Flags = tile.Add
	}
	for col := 0; col < g.outC; col += g.kern.Width() {
		vecs, last := g.kern.VecsFor(min(g.kern.Width(), g.outC-col))
		a.Last = last
		if last == g.kern.Lanes {
			a.B, a.StepB = unsafe.Pointer(&dy[col]), g.outC*size
		} else {
			width := vecs * g.kern.Lanes
			p := room(&s.panel, rows*g.outW*width)
			g.kern.PackRows(p, dy[col:], width, g.outC, rows*g.outW, g.outC-col)
			a.B, a.StepB = unsafe.Pointer(&p[0]), width*size
		}
		g.panel(a, vecs, x, sum[col:], stride)
	}
}

// panel computes the gradients of a group of output channels. Along a row of the filter, elements and channels are one
// contiguous dimension unless the row has gaps.
func (g *filterGradient[T]) panel(a *tile.Args, vecs int, x, sum []T, stride int) {
	n, runs := g.filterW*g.inC, 1
	if g.dilationW > 1 {
		n, runs = g.inC, g.filterW
	}
	for h := range g.filterH {
		for w := range runs {
			g.column(a, vecs, n, x[h*g.dilationH*stride+w*g.dilationW*g.inC:], sum[(h*g.filterW*g.inC+w*n)*g.outC:])
		}
	}
}

// column computes n rows of the gradient, as a matrix of n rows and outC columns, by tiles one below the other.
func (g *filterGradient[T]) column(a *tile.Args, vecs, n int, x, sum []T) {
	tiles := (n + g.kern.Rows - 1) / g.kern.Rows
	low, higher := n/tiles, n%tiles
	most := max(1, tile.MaxSteps/(a.K*a.Outer))
	row := 0
	for i := 0; i < tiles; i += a.Tiles {
		height, count := low, tiles-i
		if i < higher {
			height, count = low+1, higher-i
		}
		a.Tiles = min(most, count)
		a.TileA, a.TileC = height*a.RowA, height*a.RowC
		a.A, a.C = unsafe.Pointer(&x[row]), unsafe.Pointer(&sum[row*g.outC])
		g.kern.Run(a, height, vecs)
		row += height * a.Tiles
	}
}
