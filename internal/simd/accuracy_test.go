package simd

import (
	"math"
	"testing"
)

// bounds are the largest errors in ULP that the package comment promises for float32.
var bounds = []struct {
	name string
	f    func(dst, src []float32)
	want func(x float64) float64
	ulps float64
}{
	{"Exp", Exp[float32], math.Exp, 1},
	{"Log", Log[float32], math.Log, 1},
	{"Tanh", Tanh[float32], math.Tanh, 3},
	{"Log1p", Log1p[float32], math.Log1p, 3},
	{"Expm1", Expm1[float32], math.Expm1, 3},
	{"Erf", Erf[float32], math.Erf, 5},
	{"Sin", Sin[float32], math.Sin, 2},
	{"Cos", Cos[float32], math.Cos, 2},
	{"Sigmoid", Sigmoid[float32], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
}

// TestAccuracy goes through one of 4099 bit patterns of float32, both signs, over the whole range. Results below the
// smallest normal number count as right if they are zero or close to it.
func TestAccuracy(t *testing.T) {
	var src []float32
	for bits := uint64(0); bits < 1<<32; bits += 4099 {
		src = append(src, math.Float32frombits(uint32(bits)))
	}
	dst := make([]float32, len(src))
	atLevels(t, func(t *testing.T) {
		for _, tt := range bounds {
			tt.f(dst, src)
			worst, at := 0.0, float32(0)
			for i, x := range src {
				if x != 0 && math.Abs(float64(x)) < 0x1p-126 {
					continue // denormal arguments
				}
				want := tt.want(float64(x))
				if math.Abs(want) < 0x1p-126 && math.Abs(float64(dst[i])) <= 0x1p-126 {
					continue
				}
				if d := ulps(dst[i], want); d > worst {
					worst, at = d, x
				}
			}
			t.Logf("%s: %.3f ULP at %v", tt.name, worst, at)
			if worst > tt.ulps {
				t.Errorf("%s(%v) is %.2f ULP off, want at most %v", tt.name, at, worst, tt.ulps)
			}
		}
	})
}
