package conv

import (
	"fmt"
	"unsafe"

	"github.com/weft-ml/weft/internal/parallel"
)

// PoolShape describes pooling over windows of pixels, each channel by itself. Padding is as in Shape; what lies outside
// the image does not count.
type PoolShape struct {
	Batch            int
	InH, InW         int
	WindowH, WindowW int
	OutH, OutW       int
	StrideH, StrideW int
	PadTop, PadLeft  int
	Channels         int
}

func (s *PoolShape) inputs() int  { return s.Batch * s.InH * s.InW * s.Channels }
func (s *PoolShape) outputs() int { return s.Batch * s.OutH * s.OutW * s.Channels }

func (s *PoolShape) check(input, output int) {
	if s.WindowH < 1 || s.WindowW < 1 || s.StrideH < 1 || s.StrideW < 1 ||
		min(s.Batch, s.InH, s.InW, s.OutH, s.OutW, s.Channels) < 0 || input < s.inputs() || output < s.outputs() {
		panic(fmt.Sprintf("conv: %+v does not fit an input of %d and an output of %d elements", *s, input, output))
	}
}

// Real is an element type that can be pooled.
type Real interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// MaxPool computes y [Batch, OutH, OutW, Channels], the largest elements of the windows of x [Batch, InH, InW,
// Channels]. Elements that are not numbers do not count; a window without any number gives the lowest finite one.
func MaxPool[T Real](s *PoolShape, y, x []T) {
	s.check(len(x), len(y))
	p := pooling[T]{PoolShape: s, x: x, y: y, kernel: poolKernels[T]().max}
	p.byRows()
}

// MaxPoolGrad computes dx from the input x and the output y of MaxPool and dy, the gradient of y. The first of several
// largest elements of a window has the gradient.
func MaxPoolGrad[T Real](s *PoolShape, dx, x, y, dy []T) {
	s.check(min(len(x), len(dx)), min(len(y), len(dy)))
	p := pooling[T]{PoolShape: s, x: x, dx: dx, y: y, dy: dy, kernel: poolKernels[T]().maxGrad}
	p.byImages()
}

// AvgPool computes y, the means of the windows of x.
func AvgPool[T Real](s *PoolShape, y, x []T) {
	s.check(len(x), len(y))
	p := pooling[T]{
		PoolShape: s, x: x, y: y, kernel: poolKernels[T]().avg,
		scale: func(count int) T { return T(count) },
	}
	p.byRows()
}

// AvgPoolGrad computes dx from dy, the gradient of AvgPool's output.
func AvgPoolGrad[T Real](s *PoolShape, dx, dy []T) {
	s.check(len(dx), len(dy))
	p := pooling[T]{
		PoolShape: s, x: dx, dx: dx, y: dy, dy: dy, kernel: poolKernels[T]().avgGrad,
		scale: func(count int) T { return 1 / T(count) },
	}
	p.byImages()
}

// windowArgs is a call of a kernel for pixels of a row whose windows have the same size. Distances are in bytes. The
// kernel may change the arguments. The assembly knows the layout.
type windowArgs struct {
	x, dx         unsafe.Pointer // the first pixel's window
	y, dy         unsafe.Pointer // the first pixel
	pixels        int
	stepX, stepY  int // from one pixel to the next
	row           int // between rows of x
	height, width int // of the window
	channels      int
	scale         uint64 // the bits of a T
}

// pooling is a pass of pooling in progress.
type pooling[T Real] struct {
	*PoolShape
	x, dx, y, dy []T
	kernel       func(args *byte)
	scale        func(count int) T // by the number of elements in the window
}

// poolWork is the number of elements of windows that are worth another core; poolCall those of one call.
const (
	poolWork = 64 << 10
	poolCall = 32 << 10
)

// byRows goes over the outputs, whose rows are independent.
func (p *pooling[T]) byRows() {
	work := p.OutW * p.WindowH * p.WindowW * p.Channels
	if work == 0 {
		return
	}
	parallel.For(p.Batch*p.OutH, max(1, poolWork/work), func(lo, hi int) {
		var args windowArgs
		for i := lo; i < hi; i++ {
			p.row(&args, i/p.OutH, i%p.OutH)
		}
	})
}

// byImages goes over the outputs and adds to dx; windows of one image may overlap.
func (p *pooling[T]) byImages() {
	image := p.InH * p.InW * p.Channels
	if p.outputs() == 0 || image == 0 {
		clear(p.dx[:p.inputs()])
		return
	}
	work := max(p.OutH*p.OutW*p.WindowH*p.WindowW*p.Channels, image)
	parallel.For(p.Batch, max(1, poolWork/work), func(lo, hi int) {
		clear(p.dx[lo*image : hi*image])
		var args windowArgs
		for i := lo; i < hi; i++ {
			for oy := range p.OutH {
				p.row(&args, i, oy)
			}
		}
	})
}

// row goes over a row of outputs.
func (p *pooling[T]) row(args *windowArgs, image, oy int) {
	top, bottom := clip(oy*p.StrideH-p.PadTop, p.WindowH, p.InH)
	at := (image*p.OutH + oy) * p.OutW * p.Channels
	for ox := 0; ox < p.OutW; {
		left, right := clip(ox*p.StrideW-p.PadLeft, p.WindowW, p.InW)
		n := 1
		if right-left == p.WindowW {
			// The pixels whose windows are whole as well.
			n = min(p.OutW-ox, 1+(p.InW-right)/p.StrideW, max(1, poolCall/(p.WindowH*p.WindowW*p.Channels)))
		}
		if bottom > top && right > left {
			p.call(args, (image*p.InH+top)*p.InW+left, at+ox*p.Channels, n, bottom-top, right-left)
		} else if p.dy == nil {
			clear(p.y[at+ox*p.Channels:][:p.Channels])
		}
		ox += n
	}
}

// clip returns the part of the window of the given size from start on that lies in [0, n).
func clip(start, size, n int) (lo, hi int) { return max(0, start), min(n, start+size) }

// call runs the kernel for n pixels from y[out] on, the first of which has its window at pixel in of x.
func (p *pooling[T]) call(a *windowArgs, in, out, n, height, width int) {
	size := int(unsafe.Sizeof(T(0)))
	a.x, a.y = unsafe.Pointer(&p.x[in*p.Channels]), unsafe.Pointer(&p.y[out])
	if p.dy != nil {
		a.dx, a.dy = unsafe.Pointer(&p.dx[in*p.Channels]), unsafe.Pointer(&p.dy[out])
	}
	a.pixels, a.stepX, a.stepY = n, p.StrideW*p.Channels*size, p.Channels*size
	a.row = p.InW * p.Channels * size
	a.height, a.width, a.channels = height, width, p.Channels
	if p.scale != nil {
		*(*T)(unsafe.Pointer(&a.scale)) = p.scale(height * width)
	}
	p.kernel((*byte)(unsafe.Pointer(a)))
}
