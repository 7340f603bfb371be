package conv

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
)

func aligned(n int) []float32 {
	d := microkernel.Aligned[float32](n)
	copy(d, random[float32](n))
	return d
}

func onThreads(b *testing.B, f func(b *testing.B)) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint("threads=", threads), func(b *testing.B) {
			defer parallel.SetThreads(parallel.SetThreads(threads))
			f(b)
		})
	}
}

func BenchmarkConvolution(b *testing.B) {
	for _, s := range []Shape{
		shape(32, 28, 28, 1, 5, 32, 1, 1, true),
		shape(32, 14, 14, 32, 5, 64, 1, 1, true),
		shape(16, 24, 24, 64, 5, 64, 1, 1, true),
		shape(8, 56, 56, 64, 3, 64, 1, 1, true),
		shape(8, 56, 56, 64, 3, 128, 2, 1, true),
		shape(16, 7, 7, 256, 3, 256, 1, 1, true),
		shape(4, 112, 112, 3, 7, 64, 2, 1, true),
		shape(32, 24, 24, 3, 5, 64, 1, 1, true),
	} {
		x, f, dy := aligned(s.inputs()), aligned(s.filter()), aligned(s.outputs())
		y, dx, df := aligned(s.outputs()), aligned(s.inputs()), aligned(s.filter())
		for _, op := range []struct {
			name string
			run  func()
		}{
			{"Forward", func() { Forward(&s, y, x, f, Epilogue[float32]{}) }},
			{"InputGrad", func() { InputGrad(&s, dx, dy, f, false) }},
			{"FilterGrad", func() { FilterGrad(&s, df, x, dy, false) }},
		} {
			name := fmt.Sprintf("%s/%dx%dx%dx%dx%dx%ds%d", op.name, s.Batch, s.InH, s.InW, s.InC, s.FilterH, s.OutC, s.StrideH)
			b.Run(name, func(b *testing.B) {
				onThreads(b, func(b *testing.B) {
					for b.Loop() {
						op.run()
					}
					b.ReportMetric(2*float64(s.products())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF/s")
				})
			})
		}
	}
}
