// Package channelwise computes operations on windows of images or volumes that treat each channel
// separately: pooling, depthwise convolution, and their gradients. Tensors have the batch first and
// the channels last, contiguous.
//
// There is a kernel per operation, element type and vector level. It processes a rectangle of
// outputs whose windows have the same size, and keeps some vectors of channels in registers while
// it visits the elements of a window. Go code divides the outputs into such rectangles, so that
// padding is never written out.
//
// Results are bit-identical for any number of idle cores. The gradient of a filter depends on the
// number of threads that package parallel is set to.
package channelwise

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Span describes the movement of a window along one dimension.
type Span struct {
	In, Window, Out  int // sizes of the input, the window and the output
	Stride, Dilation int // distances between windows and between elements of a window
	Before           int // padding before the first element
}

// One is the span of a missing dimension.
var One = Span{In: 1, Window: 1, Out: 1, Stride: 1, Dilation: 1}

func (s *Span) valid() bool {
	return s.Window >= 1 && s.Stride >= 1 && s.Dilation >= 1 && s.In >= 0 && s.Out >= 0
}

// Clip returns the range of window elements that lie within the input at output position o, and the
// input position of the first one.
func (s *Span) Clip(o int) (lo, hi, at int) {
	at = o*s.Stride - s.Before
	hi = s.Window
	if at < 0 {
		lo = (-at + s.Dilation - 1) / s.Dilation
	}
	if room := s.In - at; room < (hi-1)*s.Dilation+1 {
		hi = (max(room, 0) + s.Dilation - 1) / s.Dilation
	}
	return lo, max(hi, lo), at + lo*s.Dilation
}

// sameClip returns the number of output positions, from o on, whose windows are clipped like the
// one at o.
func (s *Span) sameClip(o int) int {
	lo, hi, at := s.Clip(o)
	if lo > 0 || hi < s.Window || s.Window == 0 {
		return 1
	}
	last := at + (s.Window-1)*s.Dilation
	return min(s.Out-o, 1+(s.In-1-last)/s.Stride)
}

// rectangles divides rows lo to hi of the outputs into rectangles whose windows are clipped alike.
// It calls visit with the first row and column, the height and the width of each.
func rectangles(rows, cols *Span, lo, hi int, visit func(row, col, high, wide int)) {
	for row := lo; row < hi; {
		high := min(rows.sameClip(row), hi-row)
		for col := 0; col < cols.Out; {
			wide := cols.sameClip(col)
			visit(row, col, high, wide)
			col += wide
		}
		row += high
	}
}

const (
	parallelWork = 512 << 10 // window elements that justify another core
	callWork     = 256 << 10 // window elements per call of a kernel, less than 10 µs
)

func size[T simd.Float]() int { return int(unsafe.Sizeof(T(0))) }
