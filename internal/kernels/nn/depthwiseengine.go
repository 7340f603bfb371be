package nn

import (
	"github.com/weft-ml/weft/internal/numeric/channelwise"
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
)

// depthwiseEngine returns an engine for depthwise convolutions. With m outputs per channel, output
// c*m+q depends on input channel c only.
func depthwiseEngine[T simd.Float]() convEngine[T] {
	return convEngine[T]{
		forward: func(s *conv.Shape, y, x, f []T) {
			if d, ok := depthwiseOf(s); ok {
				channelwise.Convolve(d, y, x, f)
			} else {
				clear(y)
			}
		},
		inputGrad: func(s *conv.Shape, x, y, f []T) {
			if d, ok := depthwiseOf(s); ok {
				channelwise.ConvolveInputGrad(d, x, y, f)
			} else {
				clear(x)
			}
		},
		filterGrad: func(s *conv.Shape, f, x, y []T) {
			if d, ok := depthwiseOf(s); ok {
				channelwise.ConvolveFilterGrad(d, f, x, y)
			} else {
				clear(f)
			}
		},
	}
}

// depthwiseOf describes a convolution. It reports false if there is nothing to multiply.
func depthwiseOf(s *conv.Shape) (*channelwise.Depthwise, bool) {
	if s.InC == 0 || s.OutC == 0 || s.FilterH == 0 || s.FilterW == 0 {
		return nil, false
	}
	return &channelwise.Depthwise{
		Batch: s.Batch, Channels: s.InC, Multiplier: s.OutC / s.InC,
		Rows: channelwise.Span{In: s.InH, Window: s.FilterH, Out: s.OutH, Stride: s.StrideH, Dilation: s.DilationH, Before: s.PadTop},
		Cols: channelwise.Span{In: s.InW, Window: s.FilterW, Out: s.OutW, Stride: s.StrideW, Dilation: s.DilationW, Before: s.PadLeft},
	}, true
}

func shortDepthwise[H elementwise.Short]() convEngine[H] {
	e := depthwiseEngine[float32]()
	return convEngine[H]{
		forward:    func(s *conv.Shape, y, x, f []H) { viaWide(s, e.forward, y, x, f) },
		inputGrad:  func(s *conv.Shape, x, y, f []H) { viaWide(s, e.inputGrad, x, y, f) },
		filterGrad: func(s *conv.Shape, f, x, y []H) { viaWide(s, e.filterGrad, f, x, y) },
	}
}
