package mathops

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestHistogramBorders counts values at and next to the borders of bins, where only an exact
// quotient determines the bin.
func TestHistogramBorders(t *testing.T) {
	for _, bins := range []int32{1, 3, 10, 49, 100, 1000} {
		for _, limit := range []float64{1, 0.7, 1e-300, 1e300} {
			step := limit / float64(bins)
			var values []float64
			want := make([]int32, bins)
			for k := range bins {
				border := float64(k) * step
				for _, v := range []float64{math.Nextafter(border, 0), border, math.Nextafter(border, limit)} {
					values = append(values, v)
					want[min(int32(v/step), bins-1)]++
				}
			}
			got := kerneltest.Run(t, "HistogramFixedWidth", opdef.Attrs{"T": tensor.Float64, "dtype": tensor.Int32},
				tensor.Vector(values...), tensor.Vector(0, limit), tensor.Scalar(bins))
			expected := tensor.Vector(want...)
			if d := kerneltest.Diff(&got[0], &expected, 0); d != "" {
				t.Errorf("%d bins up to %g: %s", bins, limit, d)
			}
		}
	}
}
