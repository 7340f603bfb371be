package channelwise

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Pooling describes pooling over windows without gaps. Spans are the spans of planes, rows and
// columns. Padding is not counted.
type Pooling struct {
	Batch, Channels int
	Spans           [3]Span
	// Step ends a pooling early, which then is unfinished; nil for none.
	Step context.Context //nolint:containedctx // a Pooling is made for one call
}

func (s *Pooling) ended() bool { return s.Step != nil && s.Step.Err() != nil }

func (s *Pooling) imageIn() int  { return s.Spans[0].In * s.Spans[1].In * s.Spans[2].In * s.Channels }
func (s *Pooling) lineOut() int  { return s.Spans[2].Out * s.Channels }
func (s *Pooling) imageOut() int { return s.Spans[0].Out * s.Spans[1].Out * s.lineOut() }

func (s *Pooling) check(input, output int) {
	ok := s.Batch >= 0 && s.Channels >= 0 && input >= s.Batch*s.imageIn() && output >= s.Batch*s.imageOut()
	for _, d := range s.Spans {
		ok = ok && d.valid() && d.Dilation == 1
	}
	if !ok {
		panic(fmt.Sprintf("channelwise: %+v does not fit an input of %d and an output of %d elements", *s, input, output))
	}
}

// MaxPool computes y, the largest elements of the windows of x. It ignores NaN. A window of NaN
// only results in the lowest finite number.
func MaxPool[T simd.Float](s *Pooling, y, x []T) {
	s.check(len(x), len(y))
	p := pooling[T]{Pooling: s, x: x, y: y, kernel: poolKernels[T]().max}
	p.byLines()
}

// AvgPool computes y, the means of the windows of x.
func AvgPool[T simd.Float](s *Pooling, y, x []T) {
	s.check(len(x), len(y))
	p := pooling[T]{Pooling: s, x: x, y: y, kernel: poolKernels[T]().avg, scale: func(count int) T { return T(count) }}
	p.byLines()
}

// MaxPoolGrad computes dx, the gradient of MaxPool's input x, from dy, the gradient of its output.
// If several elements of a window are the largest, the first one receives the gradient.
func MaxPoolGrad[T simd.Float](s *Pooling, dx, x, dy []T) {
	s.check(min(len(x), len(dx)), len(dy))
	k := poolKernels[T]()
	p := pooling[T]{Pooling: s, x: x, dx: dx, dy: dy, kernel: k.maxGrad, max: k.max}
	p.byImages()
}

// NearPoolGrad computes dx from the input x and the output y of a max pooling and from dy, the
// gradient of y. As in TensorFlow's 3-D pooling, every element of a window that differs from y by
// less than 1e-5 receives the gradient.
func NearPoolGrad[T simd.Float](s *Pooling, dx, x, y, dy []T) {
	s.check(min(len(x), len(dx)), min(len(y), len(dy)))
	p := pooling[T]{Pooling: s, x: x, dx: dx, y: y, dy: dy, kernel: poolKernels[T]().nearGrad}
	p.byImages()
}

// AvgPoolGrad computes dx, the gradient of AvgPool's input, from dy, the gradient of its output.
func AvgPoolGrad[T simd.Float](s *Pooling, dx, dy []T) {
	s.check(len(dx), len(dy))
	p := pooling[T]{
		Pooling: s, x: dx, dx: dx, y: dy, dy: dy, kernel: poolKernels[T]().avgGrad,
		scale: func(count int) T { return 1 / T(count) },
	}
	p.byImages()
}

// poolArgs describes a call of a kernel for rows of pixels whose windows have the same size.
// Distances are in bytes. The kernel modifies the counts. The assembly depends on the layout.
type poolArgs struct {
	x, dx         unsafe.Pointer // window of the first pixel
	y, dy         unsafe.Pointer // first pixel
	pixels, lines int
	stepX, stepY  int // from one pixel to the next
	skipX, skipY  int // from the end of a row to the start of the next
	row           int // between rows of x
	// from the end of a window's plane to its start in the next plane
	plane                int
	depth, height, width int // of the window
	channels             int
	scale                uint64 // bits of a T
	left                 int    // scratch of the kernel
}

// pooling is a running pass of pooling.
type pooling[T simd.Float] struct {
	*Pooling
	x, dx, y, dy []T
	kernel       func(args *byte)
	// computes y line by line if the kernel needs y and the caller has none
	max   func(args *byte)
	scale func(count int) T // factor for windows with count elements
}

func (p *pooling[T]) work() int {
	work := p.Spans[2].Out * p.Channels
	for _, s := range p.Spans {
		work *= min(s.Window, s.In)
	}
	return max(1, work)
}

// byLines processes the outputs in parallel by line. Lines are independent.
func (p *pooling[T]) byLines() {
	if p.Batch*p.imageOut() == 0 {
		return
	}
	rows := p.Spans[1].Out
	parallel.For(p.Batch*p.Spans[0].Out*rows, max(1, parallelWork/p.work()), func(lo, hi int) {
		var args poolArgs
		for lo < hi {
			plane, row := lo/rows, lo%rows
			last := min(rows, row+hi-lo)
			p.rows(&args, p.kernel, plane, row, last, p.y[plane*rows*p.lineOut():])
			lo += last - row
		}
	})
}

// byImages processes the outputs in parallel by image and adds to dx. Windows of an image may
// overlap.
func (p *pooling[T]) byImages() {
	image := p.imageIn()
	if p.Batch*p.imageOut() == 0 || image == 0 {
		clear(p.dx[:p.Batch*image])
		return
	}
	planes, rows := p.Spans[0].Out, p.Spans[1].Out
	parallel.For(p.Batch, max(1, parallelWork/max(planes*rows*p.work(), image)), func(lo, hi int) {
		var args poolArgs
		var largest []T
		if p.max != nil {
			scratch := getScratch[T](rows * p.lineOut())
			defer putScratch(scratch)
			largest = *scratch
		}
		for i := lo; i < hi; i++ {
			clear(p.dx[i*image : (i+1)*image]) // now, so that it is cached
			for plane := i * planes; plane < (i+1)*planes; plane++ {
				y := largest
				if p.max != nil {
					p.rows(&args, p.max, plane, 0, rows, y)
				} else {
					y = p.y[plane*rows*p.lineOut():]
				}
				p.rows(&args, p.kernel, plane, 0, rows, y)
			}
		}
	})
}

// rows runs a kernel over rows lo to hi of one plane of outputs, y. Planes are numbered over the
// whole batch.
func (p *pooling[T]) rows(args *poolArgs, kernel func(*byte), plane, lo, hi int, y []T) {
	front, back, atPlane := p.Spans[0].Clip(plane % p.Spans[0].Out)
	args.depth = back - front
	inPlane := plane/p.Spans[0].Out*p.Spans[0].In + atPlane
	rows, cols := &p.Spans[1], &p.Spans[2]
	rectangles(rows, cols, lo, hi, func(row, col, high, wide int) {
		top, bottom, atRow := rows.Clip(row)
		left, right, atCol := cols.Clip(col)
		args.height, args.width = bottom-top, right-left
		elements := args.depth * args.height * args.width
		if elements == 0 {
			for i := range high * wide {
				if p.dy == nil {
					clear(y[((row+i/wide)*cols.Out+col+i%wide)*p.Channels:][:p.Channels])
				}
			}
			return
		}
		if p.scale != nil {
			*(*T)(unsafe.Pointer(&args.scale)) = p.scale(elements)
		}
		most := max(1, callWork/(elements*p.Channels))
		pixels, lines := min(wide, most), min(high, max(1, most/wide))
		for line := 0; line < high; line += lines {
			for done := 0; done < wide; done += pixels {
				if p.ended() {
					return
				}
				args.pixels, args.lines = min(pixels, wide-done), min(lines, high-line)
				in := (inPlane*rows.In+atRow+line*rows.Stride)*cols.In + atCol + done*cols.Stride
				p.call(args, kernel, in, plane, (row+line)*cols.Out+col+done, y)
			}
		}
	})
}

// call runs a kernel for pixels from output pixel out of a plane on. y holds their values, and the
// window of the first one starts at pixel in of x.
func (p *pooling[T]) call(a *poolArgs, kernel func(*byte), in, plane, out int, y []T) {
	rows, cols := &p.Spans[1], &p.Spans[2]
	a.x, a.y = unsafe.Pointer(&p.x[in*p.Channels]), unsafe.Pointer(&y[out*p.Channels])
	if p.dy != nil {
		a.dx, a.dy = unsafe.Pointer(&p.dx[in*p.Channels]), unsafe.Pointer(&p.dy[plane*rows.Out*p.lineOut()+out*p.Channels])
	}
	pixel := p.Channels * size[T]()
	a.stepX, a.stepY = cols.Stride*pixel, pixel
	a.skipX, a.skipY = rows.Stride*cols.In*pixel-a.pixels*a.stepX, (cols.Out-a.pixels)*pixel
	a.row = cols.In * pixel
	a.plane = (rows.In - a.height) * a.row
	a.channels = p.Channels
	kernel((*byte)(unsafe.Pointer(a)))
}
