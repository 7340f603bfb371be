package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// A tile of neighbouring outputs takes one pass over all columns of the filter, except at the sides
// of an image. There, some filter columns meet the image for some outputs of the tile only. Each of
// these columns takes its own pass with a lower tile, so that nothing is multiplied by zero. With
// few channels these passes are too short, and images are copied with zeros on both sides instead.

const (
	passSteps = 2 * microkernel.MaxSteps // maximum steps of a pass
	// steps of a pass over one column of the filter that do not pay off.
	shortPass = 96
)

// choosePasses decides whether images are copied, and whether some outputs take more than one pass.
func (c *correlation[T]) choosePasses() {
	c.copied = c.groups > 1
	if c.padded() && !c.copied {
		c.copied = c.filterH*c.inC < shortPass || !c.allMeet()
	}
	c.split = c.padded() && !c.copied || c.dilationW > 1 || c.filterH*c.filterW*c.inC > passSteps
}

// allMeet reports whether, for each tile, some filter column meets the image for all outputs.
func (c *correlation[T]) allMeet() bool {
	for _, p := range c.panels {
		n := ceilDiv(c.outW, p.rows)
		for i := range n {
			if first, end := c.common(c.outW*i/n, c.outW*(i+1)/n, c.padLeft, c.inW); first >= end {
				return false
			}
		}
	}
	return true
}

// common returns the range of the filter's columns that meet the image for all outputs from column
// lo to hi.
func (c *correlate) common(lo, hi, padLeft, width int) (first, end int) {
	first, _ = inside(lo*c.strideW-padLeft, c.dilationW, c.filterW, width)
	_, end = inside((hi-1)*c.strideW-padLeft, c.dilationW, c.filterW, width)
	return first, end
}

// band computes a band of output rows of a panel, tile by tile from left to right.
func (c *correlation[T]) band(g *microkernel.Args, p panel, v *view[T], y []T, b band) {
	n := ceilDiv(c.outW, p.rows)
	for i := range n {
		lo, hi := c.outW*i/n, c.outW*(i+1)/n
		first, end := c.common(lo, hi, v.padLeft, v.width)
		c.pass(g, p, v, y, b, first, end, lo, hi, false)
		for col := range first {
			if at := c.firstSeeing(col, v); at < hi {
				c.pass(g, p, v, y, b, col, col+1, at, hi, true)
			}
		}
		for col := end; col < c.filterW; col++ {
			if at := c.endSeeing(col, v); at > lo {
				c.pass(g, p, v, y, b, col, col+1, lo, at, true)
			}
		}
	}
}

// firstSeeing and endSeeing return the bounds of the range of outputs for which a column of the
// filter meets the image.
func (c *correlation[T]) firstSeeing(col int, v *view[T]) int {
	return max(0, ceilDiv(v.padLeft-col*c.dilationW, c.strideW))
}

func (c *correlation[T]) endSeeing(col int, v *view[T]) int {
	return max(0, ceilDiv(v.width+v.padLeft-col*c.dilationW, c.strideW))
}

// pass computes the contribution of the filter columns [first, end) to the outputs [lo, hi) of each
// row of a band. If add is set, it adds to the outputs.
func (c *correlation[T]) pass(g *microkernel.Args, p panel, v *view[T], y []T, b band, first, end, lo, hi int, add bool) {
	cols := end - first
	if c.dilationW > 1 {
		cols = 1
	}
	rows := max(1, passSteps/(cols*c.inC))
	for row := b.first; row < b.end; row += rows {
		for col := first; col < end; col += cols {
			c.setCall(g, p, v, row, min(row+rows, b.end), col, cols)
			c.setFlags(g, p, add)
			c.tiles(g, p, v.data[c.at(v, b.row, row, lo, col):], y[b.row*c.outRow+lo*c.outCol+p.col:], b.endRow-b.row, hi-lo)
			add = true
		}
	}
}

// setCall sets the part of a call that depends on the filter: rows [row, end) and cols columns from
// col on.
func (c *correlation[T]) setCall(g *microkernel.Args, p panel, v *view[T], row, end, col, cols int) {
	size := int(unsafe.Sizeof(T(0)))
	width := p.vecs * c.kern.Lanes
	g.B = unsafe.Pointer(&c.filter[p.at+width*(row*c.filterW+col)*c.inC])
	g.K, g.Outer = cols*c.inC, end-row
	g.RowA, g.StepA, g.NextA = c.strideW*v.pixel*size, size, (c.dilationH*v.stride-g.K)*size
	g.StepB, g.NextB = width*size, width*(c.filterW-cols)*c.inC*size
	g.RowC = c.outCol * size
	g.TileA, g.TileC, g.TileB, g.TileBias = c.strideH*v.stride*size, c.outRow*size, 0, 0
	g.Last = p.last
}

// setFlags makes the first pass add the bias, and also rectify if no other pass follows.
func (c *correlation[T]) setFlags(g *microkernel.Args, p panel, add bool) {
	g.Flags = microkernel.Add
	if add {
		return
	}
	if !c.epilogue.Add {
		g.Flags = 0
	}
	if c.epilogue.Bias != nil {
		g.Flags |= microkernel.Bias
		g.Bias = unsafe.Pointer(&c.epilogue.Bias[p.col])
	}
	if c.epilogue.Relu && !c.split {
		g.Flags |= microkernel.Relu
	}
}

// tiles computes n tiles of the given height, one below the other.
func (c *correlation[T]) tiles(g *microkernel.Args, p panel, x, y []T, n, height int) {
	most := max(1, microkernel.MaxSteps/(g.K*g.Outer))
	size := int(unsafe.Sizeof(T(0)))
	for i := 0; i < n; i += most {
		g.A, g.C = unsafe.Pointer(&x[i*g.TileA/size]), unsafe.Pointer(&y[i*c.outRow])
		g.Tiles = min(most, n-i)
		g.ContinuePrefetch()
		c.kern.Run(g, height, p.vecs)
	}
}

// fill sets the outputs of a band that does not depend on the image.
func (c *correlation[T]) fill(p panel, y []T, b band) {
	for row := b.row; row < b.endRow; row++ {
		for col := range c.outW {
			z := y[row*c.outRow+col*c.outCol+p.col:][:p.channels(c.kern.Lanes)]
			if !c.epilogue.Add {
				clear(z)
			}
			if c.epilogue.Bias != nil {
				simd.Add(z, z, c.epilogue.Bias[p.col:])
			}
			if c.epilogue.Relu {
				simd.Relu(z, z)
			}
		}
	}
}
