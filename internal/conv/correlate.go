package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/gemm"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/internal/tile"
)

// correlate are the dimensions of a correlation, the common form of a convolution and of its input's gradient:
//
//	y[oy][ox][n] = sum over a, b, c of x[oy*strideH + a*dilationH - padTop][ox*strideW + b*dilationW - padLeft][c] * f[a][b][c][n]
//
// with x zero outside the image. Padding may be negative. Outputs lie outCol, outRow and outImage elements apart.
type correlate struct {
	images               int
	inH, inW, inC        int
	outH, outW, outC     int
	filterH, filterW     int
	strideH, strideW     int
	dilationH, dilationW int
	padTop, padLeft      int

	outCol, outRow, outImage int
}

// width and height are the size of the padded image that the given numbers of outputs see.
func (c *correlate) width() int { return (c.outW-1)*c.strideW + (c.filterW-1)*c.dilationW + 1 }
func (c *correlate) height(rows int) int {
	return (rows-1)*c.strideH + (c.filterH-1)*c.dilationH + 1
}

// padded reports whether outputs see anything outside the image.
func (c *correlate) padded() bool {
	return c.padTop > 0 || c.padLeft > 0 || c.height(c.outH)-c.padTop > c.inH || c.width()-c.padLeft > c.inW
}

// correlation is a correlation in progress, the body of a parallel loop over chunks of output rows.
type correlation[T simd.Float] struct {
	correlate
	x, y     []T
	epilogue Epilogue[T]
	kern     *tile.Kernel[T]
	panels   []panel
	filter   []T // packed
	rows     int // output rows of a chunk
	chunks   int // per image
}

const (
	chunkBytes = 256 << 10 // of the image that one chunk of outputs reads: part of the second-level cache
	blockWork  = 2 << 20   // multiply-adds that are worth another core
	passSteps  = 2 * tile.MaxSteps
)

// run computes the outputs from the packed filter.
func (c *correlation[T]) run() {
	size := int(unsafe.Sizeof(T(0)))
	c.rows = max(1, (chunkBytes/size/(c.width()*c.inC)-(c.filterH-1)*c.dilationH)/c.strideH)
	if threads := parallel.Threads(); threads > 1 {
		// Enough chunks for all threads where there are few images.
		c.rows = min(c.rows, max(1, c.outH*c.images/(2*threads)))
	}
	c.rows = min(c.rows, c.outH)
	c.chunks = (c.outH + c.rows - 1) / c.rows
	work := c.rows * c.outW * c.outC * c.filterH * c.filterW * c.inC
	parallel.Run(c.images*c.chunks, max(1, blockWork/work), c)
}

func (c *correlation[T]) Range(lo, hi int) {
	s := scratchOf[T]()
	for i := lo; i < hi; i++ {
		c.chunk(s, i/c.chunks, i%c.chunks*c.rows)
	}
	s.release()
}

// chunk computes the output rows of an image from oy on, as many as a chunk has.
func (c *correlation[T]) chunk(s *scratch[T], image, oy int) {
	rows := min(c.rows, c.outH-oy)
	x, stride := c.input(s, image, oy, rows)
	y := c.y[image*c.outImage+oy*c.outRow:]
	for _, p := range c.panels {
		step := c.filterRows()
		for a := 0; a < c.filterH; a += step {
			end := min(c.filterH, a+step)
			c.setFilter(&s.args, p, a, end, stride)
			c.tiles(&s.args, p, x[a*c.dilationH*stride:], y[p.col:], rows, stride)
		}
	}
}

// input returns the part of the image that the given output rows see, and the distance between its rows: a padded copy
// unless the outputs see nothing outside.
func (c *correlation[T]) input(s *scratch[T], image, oy, rows int) (x []T, stride int) {
	x = c.x[image*c.inH*c.inW*c.inC:][:c.inH*c.inW*c.inC]
	top := oy*c.strideH - c.padTop
	if !c.padded() {
		return x[(top*c.inW-c.padLeft)*c.inC:], c.inW * c.inC
	}
	stride = c.width() * c.inC
	height := c.height(rows)
	pad := s.image(height * stride)
	copyPadded(pad, x, c.inH, c.inW, c.inC, top, -c.padLeft, height, c.width())
	return pad, stride
}

// filterRows is the number of filter rows that one pass takes: all, unless rows have gaps or calls became too long.
func (c *correlation[T]) filterRows() int {
	if c.dilationW > 1 {
		return 1
	}
	return min(c.filterH, max(1, passSteps/(c.filterW*c.inC)))
}

// setFilter points the call to rows [a, end) of the panel's filter and sets how A goes along with it. stride is the
// distance between rows of the image.
func (c *correlation[T]) setFilter(g *tile.Args, p panel, a, end, stride int) {
	size := int(unsafe.Sizeof(T(0)))
	width := p.vecs * c.kern.Lanes
	g.B = unsafe.Pointer(&c.filter[p.at+width*a*c.filterW*c.inC])
	g.StepA, g.StepB = size, width*size
	g.RowA = c.strideW * c.inC * size
	if c.dilationW == 1 {
		g.K, g.Outer = c.filterW*c.inC, end-a
		g.NextA = (c.dilationH*stride - g.K) * size
	} else {
		g.K, g.Outer = c.inC, c.filterW
		g.NextA = (c.dilationW - 1) * c.inC * size
	}
	g.NextB, g.TileB, g.TileBias = 0, 0, 0
	g.Last, g.Flags = p.last, 0
	if a > 0 {
		g.Flags = tile.Add
	}
	if end < c.filterH {
		return
	}
	if c.epilogue.Bias != nil {
		g.Flags |= tile.Bias
		g.Bias = unsafe.Pointer(&c.epilogue.Bias[p.col])
	}
	if c.epilogue.Relu {
		g.Flags |= tile.Relu
	}
}

// tiles computes rows of outputs of a panel.
func (c *correlation[T]) tiles(g *tile.Args, p panel, x, y []T, rows, stride int) {
	size := int(unsafe.Sizeof(T(0)))
	g.RowC = c.outCol * size
	most := max(1, tile.MaxSteps/(g.K*g.Outer))
	if c.outW <= p.rows {
		// A tile is a row of outputs.
		g.TileA, g.TileC = c.strideH*stride*size, c.outRow*size
		for r := 0; r < rows; r += most {
			g.A, g.C = unsafe.Pointer(&x[r*c.strideH*stride]), unsafe.Pointer(&y[r*c.outRow])
			g.Tiles = min(most, rows-r)
			c.kern.Run(g, c.outW, p.vecs)
		}
		return
	}
	n := (c.outW + p.rows - 1) / p.rows
	low, higher := c.outW/n, c.outW%n
	for r := range rows {
		xr, yr := x[r*c.strideH*stride:], y[r*c.outRow:]
		col := 0
		for i := 0; i < n; i += g.Tiles {
			height, count := low, n-i
			if i < higher {
				height, count = low+1, higher-i
			}
			g.Tiles = min(most, count)
			g.TileA, g.TileC = height*g.RowA, height*g.RowC
			g.A, g.C = unsafe.Pointer(&xr[col*c.strideW*c.inC]), unsafe.Pointer(&yr[col*c.outCol])
			c.kern.Run(g, height, p.vecs)
			col += height * g.Tiles
		}
	}
}

// panel is a group of output channels that one tile computes.
type panel struct {
	col        int // first channel
	vecs, last int // vectors, and channels in the last of them
	rows       int // outputs of a tile
	at         int // place in the packed filter
}

// setPanels cuts the output channels into panels, of which the widest tiles take four vectors where the width of the
// output suits them, and makes room for their filters.
func (c *correlation[T]) setPanels() {
	c.kern = tile.Of[T]()
	k, lanes := c.kern, c.kern.Lanes
	wide := k.WideRows > 0 && (c.outW < k.WideRows || c.outW%k.WideRows == 0)
	depth := c.filterH * c.filterW * c.inC
	c.panels = c.panels[:0]
	at := 0
	for col := 0; col < c.outC; {
		p := panel{col: col, at: at, rows: k.Rows}
		cols := min(k.Width(), c.outC-col)
		if wide && c.outC-col >= 4*lanes {
			cols, p.rows = 4*lanes, k.WideRows
		}
		p.vecs, p.last = k.VecsFor(cols)
		c.panels = append(c.panels, p)
		at += depth * p.vecs * lanes
		col += cols
	}
	if len(c.filter) < at {
		c.filter = gemm.Aligned[T](at)
	}
}
