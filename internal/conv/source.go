package conv

import (
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/internal/tile"
)

// source is what a correlation reads.
type source[T simd.Float] struct {
	correlate
	x      []T
	copied bool // images are copied, with zeros on the left and on the right
}

// view is what a chunk sees of an image.
type view[T simd.Float] struct {
	data    []T
	top     int // the row of the image that data begins with
	stride  int // distance between rows
	padLeft int // zeros that are not there
	width   int // columns that are there
}

// view returns what the output rows [oy, end) see of an image.
func (c *source[T]) view(s *tile.Scratch[T], image, oy, end int) view[T] {
	x := c.x[image*c.inH*c.inW*c.inC:][:c.inH*c.inW*c.inC]
	if !c.copied {
		return view[T]{x, 0, c.inW * c.inC, c.padLeft, c.inW}
	}
	top := max(0, oy*c.strideH-c.padTop)
	bottom := min(c.inH, (end-1)*c.strideH-c.padTop+(c.filterH-1)*c.dilationH+1)
	v := view[T]{top: top, stride: c.width() * c.inC, width: c.width()}
	v.data = tile.Room(&s.BufA, max(0, bottom-top)*v.stride)
	copyPadded(v.data, x, c.inW, c.inC, top, -c.padLeft, max(0, bottom-top), c.width())
	return v
}

// at is the place in a view of the first channel that row and col of the filter meet for output column ox of row oy.
func (c *source[T]) at(v *view[T], oy, row, ox, col int) int {
	y, x := oy*c.strideH+row*c.dilationH-c.padTop-v.top, ox*c.strideW+col*c.dilationW-v.padLeft
	return y*v.stride + x*c.inC
}

// copyPadded copies the columns left to left+cols of some rows of an image of w columns and c channels, from row top on,
// to dst. What lies beside the image is zero.
func copyPadded[T any](dst, x []T, w, c, top, left, rows, cols int) {
	before := min(cols, max(0, -left))
	inside := max(0, min(cols-before, w-max(0, left)))
	for r := range rows {
		d := dst[r*cols*c:][:cols*c]
		clear(d[:before*c])
		if inside > 0 {
			copy(d[before*c:(before+inside)*c], x[((top+r)*w+max(0, left))*c:])
		}
		clear(d[(before+inside)*c:])
	}
}
