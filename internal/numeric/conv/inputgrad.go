package conv

import (
	"github.com/weft-ml/weft/internal/numeric/gemm"
	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// InputGrad computes dx, the gradient of the input, from dy, the gradient of the output, and the
// filter f. If add is set, it adds to dx.
func InputGrad[T simd.Float](s *Shape, dx, dy, f []T, add bool) {
	s.check(len(dx), len(f), len(dy))
	switch {
	case s.inputs() == 0:
	case s.outputs() == 0:
		if !add {
			clear(dx[:s.inputs()])
		}
	case s.pointwise():
		rows := s.Batch * s.pixels()
		for g := range s.groups() {
			gemm.Mul(channels(dx, rows, s.InC, g, s), channels(dy, rows, s.OutC, g, s),
				channels(f, s.groupIn(), s.OutC, g, s).T(), (&Epilogue[T]{Add: add}).options(0))
		}
	case s.phased():
		inputGradPhases(microkernel.Of[T](), s, dx, dy, f, add)
	default:
		inputGradPatches(s, dx, dy, f, add)
	}
}

// phased reports whether the gradient of the input is computed by phases.
func (s *Shape) phased() bool {
	dilated, strided := s.DilationH > 1 || s.DilationW > 1, s.StrideH > 1 || s.StrideW > 1
	return !(dilated && strided) && s.groupIn() >= fewChannels && s.InW/s.StrideW >= narrow
}

// fewChannels is the number of channels below which tiles of the input's gradient would be mostly
// empty.
const fewChannels = 8

// phase is the set of pixels of an input's gradient, in one dimension, that depend on the same
// filter elements: with a stride of s, every s-th pixel. Its gradient is a correlation of stride 1.
type phase struct {
	taps  taps
	first int // first pixel
	count int // number of pixels
	pad   int
}

// phaseOf returns phase r of a dimension with in pixels. If dilation is not 1, stride must be 1.
func phaseOf(r, in, filter, stride, dilation, pad int) phase {
	t := taps{first: r, step: stride, count: max(0, (filter-r+stride-1)/stride)}
	// Pixel r - pad + q*stride is the sum over i of dy[q-i] times tap r + i*stride. Start with the
	// first q whose pixel is not negative.
	q := (pad - r + stride - 1) / stride
	if pad < r {
		q = -((r - pad) / stride)
	}
	p := phase{taps: t, first: r - pad + q*stride, pad: (t.count-1)*dilation - q}
	if p.first < in {
		p.count = (in - p.first + stride - 1) / stride
	}
	return p
}

// inputGradPhases computes a correlation for each pair of phases.
func inputGradPhases[T simd.Float](kern *microkernel.Kernel[T], s *Shape, dx, dy, f []T, add bool) {
	c := microkernel.Take[correlation[T], T](&correlations)
	defer c.release()
	c.kern = kern
	if !add && (s.FilterH < s.StrideH || s.FilterW < s.StrideW) {
		clear(dx[:s.inputs()]) // some pixels have no output
	}
	for i := range s.StrideH * s.StrideW {
		v := phaseOf(i/s.StrideW, s.InH, s.FilterH, s.StrideH, s.DilationH, s.PadTop)
		h := phaseOf(i%s.StrideW, s.InW, s.FilterW, s.StrideW, s.DilationW, s.PadLeft)
		if v.taps.count == 0 || h.taps.count == 0 || v.count == 0 || h.count == 0 {
			continue
		}
		c.source = source[T]{x: dy, correlate: correlate{
			images: s.Batch, inH: s.OutH, inW: s.OutW, inC: s.groupOut(), outH: v.count, outW: h.count, outC: s.groupIn(),
			groups: s.groups(), pixel: s.OutC,
			filterH: v.taps.count, filterW: h.taps.count, strideH: 1, strideW: 1,
			dilationH: s.DilationH, dilationW: s.DilationW, padTop: v.pad, padLeft: h.pad,
			outCol: s.StrideW * s.InC, outRow: s.StrideH * s.InW * s.InC, outImage: s.InH * s.InW * s.InC,
		}}
		c.epilogue.Add = add
		c.y = dx[(v.first*s.InW+h.first)*s.InC:]
		c.packTurned(f, s.FilterW, v.taps, h.taps)
		c.run()
	}
}
