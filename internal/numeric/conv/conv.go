// Package conv computes two-dimensional convolutions and their gradients on tensors in NHWC order:
// images, rows, columns, channels, the last contiguous. Filters are in HWIO order.
//
// A convolution is a matrix product whose left operand consists of the patches of the image. This
// matrix is not written out, because the elements of a row of a patch are contiguous, and the
// patches of neighbouring outputs are a fixed distance apart. The micro-kernels of package
// microkernel read the image in place, after its borders have been padded with zeros.
//
// The gradient of the input is a convolution with the flipped filter, computed once per phase of
// the strides. The gradient of the filter is a convolution with the transposed image, which the
// micro-kernels read as easily. Patches are written out as a matrix (im2col) only if outputs are
// narrow or channels are few.
//
// Results are bit-identical for any number of idle cores. The gradient of the filter depends on the
// number of threads that package parallel is set to.
package conv

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Shape describes a convolution. PadTop and PadLeft are the numbers of zeros before the first row
// and column. The padding after the last ones follows from the size of the output, which may leave
// input unused.
type Shape struct {
	Batch                int
	InH, InW, InC        int
	FilterH, FilterW     int
	OutH, OutW, OutC     int
	StrideH, StrideW     int
	DilationH, DilationW int // distances between the elements of the filter, at least 1
	// of channels: outputs of a group depend on inputs of that group only; 0 means 1
	Groups          int
	PadTop, PadLeft int
}

func (s *Shape) inputs() int   { return s.Batch * s.InH * s.InW * s.InC }
func (s *Shape) outputs() int  { return s.Batch * s.OutH * s.OutW * s.OutC }
func (s *Shape) patch() int    { return s.FilterH * s.FilterW * s.groupIn() }
func (s *Shape) pixels() int   { return s.OutH * s.OutW }
func (s *Shape) filter() int   { return s.patch() * s.OutC }
func (s *Shape) products() int { return s.Batch * s.pixels() * s.filter() }
func (s *Shape) groups() int   { return max(1, s.Groups) }
func (s *Shape) groupIn() int  { return s.InC / s.groups() }
func (s *Shape) groupOut() int { return s.OutC / s.groups() }

// pointwise reports whether every output depends on one pixel, so that the convolution is a plain
// matrix product.
func (s *Shape) pointwise() bool {
	return s.FilterH == 1 && s.FilterW == 1 && s.StrideH == 1 && s.StrideW == 1 &&
		s.PadTop == 0 && s.PadLeft == 0 && s.InH == s.OutH && s.InW == s.OutW
}

// check panics if the shape or the lengths of input, filter and output are invalid.
func (s *Shape) check(input, filter, output int) {
	switch {
	case s.FilterH < 1 || s.FilterW < 1 || s.StrideH < 1 || s.StrideW < 1 || s.DilationH < 1 || s.DilationW < 1,
		min(s.Batch, s.InH, s.InW, s.InC, s.OutH, s.OutW, s.OutC) < 0,
		s.InC%s.groups() != 0 || s.OutC%s.groups() != 0,
		input < s.inputs() || filter < s.filter() || output < s.outputs():
		panic(fmt.Sprintf("conv: %+v does not fit an input of %d, a filter of %d and an output of %d elements",
			*s, input, filter, output))
	}
}

// Epilogue describes the operations on an output before it is stored, in this order.
type Epilogue[T simd.Float] struct {
	Add  bool // add the old value of the output
	Bias []T  // add the bias, one element per channel; may be nil
	Relu bool // set negative elements to 0
}

// options returns the epilogue as options of a product, for outputs from the given channel on.
func (e *Epilogue[T]) options(channel int) gemm.Options[T] {
	o := gemm.Options[T]{Relu: e.Relu}
	if e.Bias != nil {
		o.Bias = e.Bias[channel:]
	}
	if e.Add {
		o.Beta = 1
	}
	return o
}

// channels views the channels of group g as a matrix. A row of data has width channels.
func channels[T any](data []T, rows, width, g int, s *Shape) gemm.Matrix[T] {
	n := width / s.groups()
	return gemm.Matrix[T]{Data: data[g*n:], Rows: rows, Cols: n, RowStride: width, ColStride: 1}
}

// Forward computes y [Batch, OutH, OutW, OutC] from x [Batch, InH, InW, InC] and f [FilterH,
// FilterW, InC/Groups, OutC].
func Forward[T simd.Float](s *Shape, y, x, f []T, e Epilogue[T]) {
	s.check(len(x), len(f), len(y))
	switch {
	case s.outputs() == 0:
	case s.pointwise():
		rows := s.Batch * s.pixels()
		for g := range s.groups() {
			gemm.Mul(channels(y, rows, s.OutC, g, s), channels(x, rows, s.InC, g, s), channels(f, s.groupIn(), s.OutC, g, s),
				e.options(g*s.groupOut()))
		}
	case s.patch() == 0 || s.OutW < narrow:
		forwardPatches(s, y, x, f, e)
	default:
		forwardDirect(microkernel.Of[T](), s, y, x, f, e)
	}
}

func forwardDirect[T simd.Float](kern *microkernel.Kernel[T], s *Shape, y, x, f []T, e Epilogue[T]) {
	c := microkernel.Take[correlation[T], T](&correlations)
	defer c.release()
	c.kern, c.source = kern, source[T]{correlate: s.correlate(), x: x}
	c.y, c.epilogue = y, e
	c.packFilter(f)
	c.run()
}

// correlate returns the correlation that computes the convolution.
func (s *Shape) correlate() correlate {
	return correlate{
		images: s.Batch, inH: s.InH, inW: s.InW, inC: s.groupIn(), outH: s.OutH, outW: s.OutW, outC: s.groupOut(),
		groups: s.groups(), pixel: s.InC,
		filterH: s.FilterH, filterW: s.FilterW, strideH: s.StrideH, strideW: s.StrideW,
		dilationH: s.DilationH, dilationW: s.DilationW, padTop: s.PadTop, padLeft: s.PadLeft,
		outCol: s.OutC, outRow: s.OutW * s.OutC, outImage: s.pixels() * s.OutC,
	}
}

// narrow is the width of outputs below which tiles would have too few rows.
const narrow = 4
