package mathops

import (
	"math"
	"testing"
)

// TestFloat8 compares conversions to and from float8 with TensorFlow's.
func TestFloat8(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ in, e5m2, e4m3 float64 }{
		{0, 0, 0}, {1, 1, 1}, {-1, -1, -1}, {0.3, 0.3125, 0.3125}, {447, 448, 448}, {449, 448, 448}, {464, 448, 448}, {465, 448, nan},
		{500, 512, nan}, {57344, 57344, nan}, {61439, 57344, nan}, {61440, inf, nan}, {1e9, inf, nan}, {-1e9, -inf, nan}, {inf, inf, nan},
		{-inf, -inf, nan}, {nan, nan, nan}, {0x1p-9, 0x1p-9, 0x1p-9}, {0x1p-10, 0x1p-10, 0}, {0x1.03p-10, 0x1p-10, 0x1p-9}, {0x1p-16, 0x1p-16, 0},
		{0x1p-17, 0, 0}, {0x1.8p-17, 0x1p-16, 0}, {1.0625, 1, 1}, {1.1875, 1.25, 1.25}, {1.125, 1, 1.125}, {17.5, 16, 18}, {3.14, 3, 3.25},
	} {
		for _, f := range []struct {
			*float8
			want float64
		}{{e5m2, c.e5m2}, {e4m3, c.e4m3}} {
			if got := float64(f.values[f.of(c.in)]); got != f.want && !(math.IsNaN(got) && math.IsNaN(f.want)) {
				t.Errorf("%v with a largest number of %v becomes %v, want %v", c.in, f.values[f.finite-1], got, f.want)
			}
		}
	}
}
