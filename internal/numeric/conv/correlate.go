package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// correlate holds the dimensions of a correlation, the common form of a convolution and of its
// input's gradient:
//
//	y[oy][ox][n] = sum over a, b, c of f[a][b][c][n] *
//		x[oy*strideH + a*dilationH - padTop][ox*strideW + b*dilationW - padLeft][c]
//
// with x zero outside the image. Padding may be negative. Outputs are outCol, outRow and outImage
// elements apart.
type correlate struct {
	images               int
	inH, inW, inC        int // channels of a group
	outH, outW, outC     int
	groups               int
	pixel                int // channels of x in all groups
	filterH, filterW     int
	strideH, strideW     int
	dilationH, dilationW int
	padTop, padLeft      int

	outCol, outRow, outImage int
}

// outs returns the number of channels of y.
func (c *correlate) outs() int { return c.groups * c.outC }

// width returns the number of columns that the outputs of a row depend on, including the padding.
func (c *correlate) width() int { return (c.outW-1)*c.strideW + (c.filterW-1)*c.dilationW + 1 }

// padded reports whether outputs depend on padding to the left or right of the image.
func (c *correlate) padded() bool { return c.padLeft > 0 || c.width()-c.padLeft > c.inW }

// filterRows returns the range of the filter's rows that fall inside the image for an output row.
func (c *correlate) filterRows(row int) (first, end int) {
	return inside(row*c.strideH-c.padTop, c.dilationH, c.filterH, c.inH)
}

// inside returns the range of those i < n for which 0 <= at + i*step < size.
func inside(at, step, n, size int) (first, end int) {
	if at < 0 {
		first = min(n, ceilDiv(-at, step))
	}
	if at < size {
		end = min(n, ceilDiv(size-at, step))
	}
	return first, max(first, end)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// correlation is a running correlation, the body of a parallel loop over chunks of output rows.
type correlation[T simd.Float] struct {
	source[T]
	y        []T
	epilogue Epilogue[T]
	kern     *microkernel.Kernel[T]
	panels   []panel
	filter   []T // packed

	rows   int  // output rows of a chunk
	chunks int  // per image
	shared int  // consecutive chunks for which a panel's filter is read once
	split  bool // some outputs take several passes
}

var correlations microkernel.Pool

// release returns a correlation to the pool, with the memory of its filter.
func (c *correlation[T]) release() {
	*c = correlation[T]{panels: c.panels[:0], filter: c.filter}
	microkernel.Put[correlation[T], T](&correlations, c)
}

const (
	// part of the image that one chunk of outputs reads; a part of the L2 cache.
	chunkBytes  = 256 << 10
	smallImage  = 64 << 10  // size of images that share a filter
	filterBytes = 512 << 10 // a filter that does not stay in the L2 cache
	blockWork   = 2 << 20   // multiply-adds that justify another core
)

// run computes the outputs from the packed filter.
func (c *correlation[T]) run() {
	c.choosePasses()
	size := int(unsafe.Sizeof(T(0)))
	c.rows = max(1, (chunkBytes/size/(c.width()*c.pixel)-(c.filterH-1)*c.dilationH)/c.strideH)
	if threads := parallel.Threads(); threads > 1 {
		// With few images, make enough chunks for all threads.
		c.rows = min(c.rows, max(1, c.outH*c.images/(2*threads)))
	}
	c.chunks = ceilDiv(c.outH, min(c.rows, c.outH))
	c.rows = ceilDiv(c.outH, c.chunks)
	c.shared = 1
	if image := c.inH * c.inW * c.pixel * size; !c.copied && image <= smallImage && len(c.filter)*size > filterBytes {
		c.shared = min(chunkBytes/max(1, image), ceilDiv(c.images*c.chunks, 2*parallel.Threads()))
	}
	work := c.rows * c.outW * c.outs() * c.filterH * c.filterW * c.inC
	parallel.Run(c.images*c.chunks, max(c.shared, blockWork/work), c)
}

// Range computes chunks lo to hi. A filter that is too large to stay in the cache is read once for
// several small images.
func (c *correlation[T]) Range(lo, hi int) {
	s := microkernel.ScratchOf[T]()
	for ; lo < hi; lo += c.shared {
		end := min(lo+c.shared, hi)
		var v view[T]
		for i, p := range c.panels {
			for at := lo; at < end; at++ {
				image, oy := at/c.chunks, at%c.chunks*c.rows
				last := min(oy+c.rows, c.outH)
				if i == 0 {
					c.fetchNext(&s.Args, image, oy, last)
				}
				if i == 0 || c.shared > 1 || p.group != c.panels[i-1].group {
					v = c.view(s, image, oy, last, p.group)
				}
				c.chunk(&s.Args, p, &v, c.y[image*c.outImage:], oy, last)
			}
		}
		for at := lo; c.split && c.epilogue.Relu && at < end; at++ {
			y, oy := c.y[at/c.chunks*c.outImage:], at%c.chunks*c.rows
			z := y[oy*c.outRow : min(oy+c.rows, c.outH)*c.outRow]
			simd.Relu(z, z)
		}
	}
	s.Release()
}

// chunk computes the output rows [oy, end) of an image y and a panel, band by band.
func (c *correlation[T]) chunk(g *microkernel.Args, p panel, v *view[T], y []T, oy, end int) {
	for row := oy; row < end; {
		b := c.bandFrom(row, end)
		if b.first == b.end {
			c.fill(p, y, b)
		} else {
			c.band(g, p, v, y, b)
		}
		row = b.endRow
	}
}

// fetchNext makes the micro-kernels prefetch the input of the chunk that follows output rows [oy,
// end) of an image.
func (c *correlation[T]) fetchNext(g *microkernel.Args, image, oy, end int) {
	g.StepAhead = 0
	if c.copied || c.shared > 1 {
		return // the input is small compared with the outputs or the filter
	}
	size, row := int(unsafe.Sizeof(T(0))), c.inW*c.pixel
	seen := max(0, end*c.strideH-c.padTop+(c.filterH-1)*c.dilationH)
	tiles := len(c.panels) * (end - oy) * ceilDiv(c.outW, c.panels[0].rows)
	g.Prefetch(unsafe.Pointer(&c.x[0]), (image*c.inH+seen)*row*size, (end-oy)*c.strideH*row*size, tiles*c.filterH*c.filterW*c.inC)
}

// band is a run of output rows that depend on the same filter rows [first, end). The other filter
// rows fall outside the image.
type band struct{ row, endRow, first, end int }

// bandFrom returns the band that starts with a row, limited to rows before end.
func (c *correlate) bandFrom(row, end int) band {
	b := band{row: row, endRow: row + 1}
	b.first, b.end = c.filterRows(row)
	for b.endRow < end {
		if first, end := c.filterRows(b.endRow); first != b.first || end != b.end {
			break
		}
		b.endRow++
	}
	return b
}
