package conv

import (
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// source describes the input of a correlation.
type source[T simd.Float] struct {
	correlate
	x []T
	// images are copied, one group of channels at a time, with zeros on the left and on the right
	copied bool
}

// view is the part of an image that a chunk reads.
type view[T simd.Float] struct {
	data    []T
	top     int // first image row in data
	stride  int // distance between rows
	pixel   int // distance between pixels
	padLeft int // omitted zeros on the left
	width   int // present columns
}

// view returns the part of an image that output rows [oy, end) of a group read.
func (c *source[T]) view(s *microkernel.Scratch[T], image, oy, end, group int) view[T] {
	size := c.inH * c.inW * c.pixel
	x := c.x[image*size : (image+1)*size][group*c.inC:]
	if !c.copied {
		return view[T]{x, 0, c.inW * c.pixel, c.pixel, c.padLeft, c.inW}
	}
	top := max(0, oy*c.strideH-c.padTop)
	bottom := min(c.inH, (end-1)*c.strideH-c.padTop+(c.filterH-1)*c.dilationH+1)
	v := view[T]{top: top, stride: c.width() * c.inC, pixel: c.inC, width: c.width()}
	v.data = microkernel.Resize(&s.BufA, max(0, bottom-top)*v.stride)
	c.copyPadded(v.data, x, top, max(0, bottom-top))
	return v
}

// at returns the position in a view of the first channel that the filter element (row, col) reads
// for output (oy, ox).
func (c *source[T]) at(v *view[T], oy, row, ox, col int) int {
	y, x := oy*c.strideH+row*c.dilationH-c.padTop-v.top, ox*c.strideW+col*c.dilationW-v.padLeft
	return y*v.stride + x*v.pixel
}

// copyPadded copies rows of a group of an image, from row top on, to dst. It fills the padding with
// zeros.
func (c *source[T]) copyPadded(dst, x []T, top, rows int) {
	cols := c.width()
	before, left := min(cols, max(0, c.padLeft)), max(0, -c.padLeft)
	inside := max(0, min(cols-before, c.inW-left))
	for r := range rows {
		d := dst[r*cols*c.inC:][:cols*c.inC]
		clear(d[:before*c.inC])
		switch from := ((top+r)*c.inW + left) * c.pixel; {
		case inside == 0:
		case c.pixel == c.inC:
			copy(d[before*c.inC:(before+inside)*c.inC], x[from:])
		default:
			simd.CopyRows(d, before*c.inC, c.inC, x, from, c.pixel, inside, c.inC)
		}
		clear(d[(before+inside)*c.inC:])
	}
}
