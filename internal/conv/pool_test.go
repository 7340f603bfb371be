package conv

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func poolShape(batch, h, w, c, window, stride int, same bool) PoolShape {
	s := shape(batch, h, w, c, window, 1, stride, 1, same)
	return PoolShape{
		Batch: batch, InH: h, InW: w, Channels: c, WindowH: window, WindowW: window, OutH: s.OutH, OutW: s.OutW,
		StrideH: stride, StrideW: stride, PadTop: s.PadTop, PadLeft: s.PadLeft,
	}
}

var poolShapes = []PoolShape{
	poolShape(2, 8, 8, 3, 2, 2, false),
	poolShape(2, 9, 7, 20, 3, 2, true),
	poolShape(1, 12, 13, 64, 3, 1, true),
	poolShape(3, 5, 5, 37, 5, 3, true),
	poolShape(1, 30, 30, 16, 2, 3, false),
	poolShape(2, 4, 4, 8, 4, 4, false),
	poolShape(1, 2, 2, 5, 4, 1, true),
	poolShape(2, 3, 3, 0, 2, 1, true),
	poolShape(0, 3, 3, 4, 2, 1, true),
	{Batch: 1, InH: 10, InW: 12, Channels: 9, WindowH: 2, WindowW: 5, OutH: 4, OutW: 11, StrideH: 3, StrideW: 1, PadTop: 1, PadLeft: 2},
}

// each calls f for every output pixel with the input pixels of its window.
func (s *PoolShape) each(f func(out int, in []int)) {
	for b := range s.Batch {
		for oy := range s.OutH {
			for ox := range s.OutW {
				var in []int
				for a := range s.WindowH {
					for q := range s.WindowW {
						iy, ix := oy*s.StrideH-s.PadTop+a, ox*s.StrideW-s.PadLeft+q
						if iy >= 0 && iy < s.InH && ix >= 0 && ix < s.InW {
							in = append(in, (b*s.InH+iy)*s.InW+ix)
						}
					}
				}
				f((b*s.OutH+oy)*s.OutW+ox, in)
			}
		}
	}
}

func TestPooling(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for i, s := range poolShapes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				testPooling[float32](t, &s, 1e-6)
				testPooling[float64](t, &s, 1e-14)
				testPooling[int8](t, &s, 0)
			})
		}
	})
}

func testPooling[T Real](t *testing.T, s *PoolShape, tolerance float64) {
	t.Helper()
	// Few different values, so that there are ties.
	x, dy := make([]T, s.inputs()), make([]T, s.outputs())
	for i := range x {
		x[i] = T(i * 7 % 11)
	}
	for i := range dy {
		dy[i] = T(i%5) + 1
	}
	y, mean := make([]T, s.outputs()), make([]T, s.outputs())
	dx, dMean := slices.Repeat([]T{99}, s.inputs()), slices.Repeat([]T{99}, s.inputs())
	MaxPool(s, y, x)
	AvgPool(s, mean, x)
	MaxPoolGrad(s, dx, x, y, dy)
	AvgPoolGrad(s, dMean, dy)

	wantY, wantMean := make([]float64, len(y)), make([]float64, len(y))
	wantDX, wantDMean := make([]float64, len(x)), make([]float64, len(x))
	s.each(func(out int, in []int) {
		for c := range s.Channels {
			o, best, sum := out*s.Channels+c, in[0]*s.Channels+c, 0.0
			for _, p := range in {
				i := p*s.Channels + c
				sum += float64(x[i])
				if x[i] > x[best] {
					best = i
				}
				wantDMean[i] += float64(dy[o]) * float64(1/T(len(in)))
			}
			wantY[o], wantMean[o] = float64(x[best]), sum/float64(len(in))
			wantDX[best] += float64(dy[o])
		}
	})
	_, integer := any(T(0)).(int8)
	for _, r := range []struct {
		what string
		got  []T
		want []float64
	}{{"MaxPool", y, wantY}, {"AvgPool", mean, wantMean}, {"MaxPoolGrad", dx, wantDX}, {"AvgPoolGrad", dMean, wantDMean}} {
		for i, w := range r.want {
			if integer && r.what == "AvgPool" {
				w = math.Trunc(w)
			}
			if math.Abs(float64(r.got[i])-w) > tolerance*(1+math.Abs(w)) {
				t.Fatalf("%s[%T] %+v: element %d is %v, want %v", r.what, x[:0], *s, i, r.got[i], w)
			}
		}
	}
}

// TestMaxPoolWithoutNumbers compares with what TensorFlow 2.21 computes.
func TestMaxPoolWithoutNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	s := poolShape(1, 2, 2, 1, 2, 2, false)
	tests := []struct {
		x    []float32
		y    float32
		grad []float32
	}{
		{[]float32{nan, nan, nan, nan}, -math.MaxFloat32, []float32{1, 0, 0, 0}},
		{[]float32{-inf, -inf, -inf, -inf}, -math.MaxFloat32, []float32{1, 0, 0, 0}},
		{[]float32{nan, 1, 2, 3}, 3, []float32{0, 0, 0, 1}},
		{[]float32{1, 2, nan, 0}, 2, []float32{0, 1, 0, 0}},
		{[]float32{3, 3, nan, 1}, 3, []float32{1, 0, 0, 0}},
	}
	atLevels(t, func(t *testing.T) {
		for _, tt := range tests {
			y, dx := make([]float32, 1), make([]float32, 4)
			MaxPool(&s, y, tt.x)
			MaxPoolGrad(&s, dx, tt.x, y, []float32{1})
			if y[0] != tt.y || !slices.Equal(dx, tt.grad) {
				t.Errorf("MaxPool(%v) = %v with gradient %v, want %v and %v", tt.x, y[0], dx, tt.y, tt.grad)
			}
		}
	})
}
