package channelwise

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/parallel"
)

func random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*7919%1013)/1013 - 0.5
	}
	return x
}

// each runs operations with one and two threads.
func each(b *testing.B, shape string, ops map[string]func()) {
	for name, op := range ops {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%s/threads=%d", name, shape, threads), func(b *testing.B) {
				defer parallel.SetThreads(parallel.SetThreads(threads))
				for b.Loop() {
					op()
				}
			})
		}
	}
}

func BenchmarkPool(b *testing.B) {
	for _, s := range []Pooling{square(16, 28, 28, 96, 2, 2, true), square(32, 24, 24, 64, 3, 2, true)} {
		x, dx := random(s.Batch*s.imageIn()), random(s.Batch*s.imageIn())
		y, dy := random(s.Batch*s.imageOut()), random(s.Batch*s.imageOut())
		each(b, fmt.Sprintf("%dx%dx%dx%dw%d", s.Batch, s.Spans[1].In, s.Spans[2].In, s.Channels, s.Spans[1].Window), map[string]func(){
			"Max":     func() { MaxPool(&s, y, x) },
			"MaxGrad": func() { MaxPoolGrad(&s, dx, x, dy) },
			"Avg":     func() { AvgPool(&s, y, x) },
			"AvgGrad": func() { AvgPoolGrad(&s, dx, dy) },
		})
	}
}

func BenchmarkDepthwise(b *testing.B) {
	for _, s := range []Depthwise{
		{16, 64, 1, span(28, 3, 1, 1, true), span(28, 3, 1, 1, true)},
		{16, 256, 1, span(14, 3, 1, 1, true), span(14, 3, 1, 1, true)},
		{16, 64, 1, span(28, 3, 2, 1, true), span(28, 3, 2, 1, true)},
		{16, 96, 1, span(14, 5, 1, 1, true), span(14, 5, 1, 1, true)},
		{16, 32, 2, span(28, 3, 1, 1, true), span(28, 3, 1, 1, true)},
	} {
		x, f, y := random(s.Batch*s.imageIn()), random(s.filter()), random(s.Batch*s.imageOut())
		each(b, fmt.Sprintf("%dx%dx%dx%dx%dw%ds%d", s.Batch, s.Rows.In, s.Cols.In, s.Channels, s.Multiplier, s.Rows.Window, s.Rows.Stride), map[string]func(){
			"Forward":    func() { Convolve(&s, y, x, f) },
			"InputGrad":  func() { ConvolveInputGrad(&s, x, y, f) },
			"FilterGrad": func() { ConvolveFilterGrad(&s, f, x, y) },
		})
	}
}
