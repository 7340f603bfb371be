package channelwise

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

func atLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range simd.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			old := simd.Force(l)
			defer simd.Force(old)
			test(t)
		})
	}
}

// span returns a span with SAME or VALID padding.
func span(in, window, stride, dilation int, same bool) Span {
	reach := (window-1)*dilation + 1
	s := Span{In: in, Window: window, Out: max(0, (in-reach)/stride+1), Stride: stride, Dilation: dilation}
	if same {
		s.Out = (in + stride - 1) / stride
		s.Before = max(0, (s.Out-1)*stride+reach-in) / 2
	}
	return s
}

// square returns a pooling of images with square windows.
func square(batch, h, w, c, window, stride int, same bool) Pooling {
	return Pooling{Batch: batch, Channels: c, Spans: [3]Span{One, span(h, window, stride, 1, same), span(w, window, stride, 1, same)}}
}

var poolings = []Pooling{
	square(2, 8, 8, 3, 2, 2, false),
	square(2, 9, 7, 20, 3, 2, true),
	square(1, 12, 13, 64, 3, 1, true),
	square(3, 5, 5, 37, 5, 3, true),
	square(1, 30, 30, 16, 2, 3, false),
	square(2, 4, 4, 8, 4, 4, false),
	square(1, 2, 2, 5, 4, 1, true),
	square(2, 3, 3, 0, 2, 1, true),
	square(0, 3, 3, 4, 2, 1, true),
	square(1, 40, 45, 40, 3, 1, true),
	square(1, 2, 400, 80, 3, 1, true),
	{1, 9, [3]Span{One, {10, 2, 4, 3, 1, 1}, {12, 5, 11, 1, 1, 2}}, nil},
	{2, 19, [3]Span{span(5, 3, 2, 1, true), span(7, 2, 2, 1, false), span(8, 3, 1, 1, true)}, nil},
	{1, 80, [3]Span{span(4, 2, 2, 1, false), span(4, 2, 2, 1, false), span(5, 2, 2, 1, true)}, nil},
}

// each calls f for every output pixel with the input pixels of its window.
func (s *Pooling) each(f func(out int, in []int)) {
	pixels := func(s *Span, o int) (in []int) {
		for e := range s.Window {
			if at := o*s.Stride - s.Before + e*s.Dilation; at >= 0 && at < s.In {
				in = append(in, at)
			}
		}
		return in
	}
	out := 0
	for b := range s.Batch {
		for plane := range s.Spans[0].Out {
			for row := range s.Spans[1].Out {
				for col := range s.Spans[2].Out {
					var in []int
					for _, p := range pixels(&s.Spans[0], plane) {
						for _, y := range pixels(&s.Spans[1], row) {
							for _, x := range pixels(&s.Spans[2], col) {
								in = append(in, ((b*s.Spans[0].In+p)*s.Spans[1].In+y)*s.Spans[2].In+x)
							}
						}
					}
					f(out, in)
					out++
				}
			}
		}
	}
}

func TestPooling(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for i, s := range poolings {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				testPooling[float32](t, &s, 1e-6)
				testPooling[float64](t, &s, 1e-14)
			})
		}
	})
}

func testPooling[T simd.Float](t *testing.T, s *Pooling, tolerance float64) {
	t.Helper()
	// Few distinct values, so that there are ties.
	x, dy := make([]T, s.Batch*s.imageIn()), make([]T, s.Batch*s.imageOut())
	for i := range x {
		x[i] = T(i * 7 % 11)
	}
	for i := range dy {
		dy[i] = T(i%5) + 1
	}
	y, mean := make([]T, len(dy)), make([]T, len(dy))
	var dx, dNear, dMean = slices.Repeat([]T{99}, len(x)), slices.Repeat([]T{99}, len(x)), slices.Repeat([]T{99}, len(x))
	MaxPool(s, y, x)
	AvgPool(s, mean, x)
	MaxPoolGrad(s, dx, x, dy)
	NearPoolGrad(s, dNear, x, y, dy)
	AvgPoolGrad(s, dMean, dy)

	wantY, wantMean := make([]float64, len(y)), make([]float64, len(y))
	wantDX, wantNear, wantDMean := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
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
			for _, p := range in {
				if i := p*s.Channels + c; x[i] == x[best] {
					wantNear[i] += float64(dy[o])
				}
			}
			wantY[o], wantMean[o] = float64(x[best]), sum/float64(len(in))
			wantDX[best] += float64(dy[o])
		}
	})
	for _, r := range []struct {
		what string
		got  []T
		want []float64
	}{
		{"MaxPool", y, wantY}, {"AvgPool", mean, wantMean}, {"MaxPoolGrad", dx, wantDX}, {"NearPoolGrad", dNear, wantNear},
		{"AvgPoolGrad", dMean, wantDMean},
	} {
		compare(t, fmt.Sprintf("%s[%T] %+v", r.what, x[:0], *s), r.got, r.want, tolerance)
	}
}

func compare[T simd.Float](t *testing.T, what string, got []T, want []float64, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tolerance*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// TestMaxPoolWithoutNumbers compares with results of TensorFlow 2.21.
func TestMaxPoolWithoutNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	s := square(1, 2, 2, 1, 2, 2, false)
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
			MaxPoolGrad(&s, dx, tt.x, []float32{1})
			if y[0] != tt.y || !slices.Equal(dx, tt.grad) {
				t.Errorf("MaxPool(%v) = %v with gradient %v, want %v and %v", tt.x, y[0], dx, tt.y, tt.grad)
			}
		}
	})
}

// TestNearPoolGrad compares with results of TensorFlow 2.21 for MaxPool3DGrad.
func TestNearPoolGrad(t *testing.T) {
	inf := float32(math.Inf(1))
	s := square(1, 2, 2, 1, 2, 2, false)
	tests := []struct{ x, y, grad []float32 }{
		{[]float32{0, 0, 0, 0}, []float32{0}, []float32{1, 1, 1, 1}},
		{[]float32{1, 1.000009, 0.5, 1.00002}, []float32{1}, []float32{1, 1, 0, 0}},
		{[]float32{inf, 0, inf, 0}, []float32{inf}, []float32{0, 0, 0, 0}},
	}
	atLevels(t, func(t *testing.T) {
		for _, tt := range tests {
			dx := make([]float32, 4)
			NearPoolGrad(&s, dx, tt.x, tt.y, []float32{1})
			if !slices.Equal(dx, tt.grad) {
				t.Errorf("NearPoolGrad of %v is %v, want %v", tt.x, dx, tt.grad)
			}
		}
	})
}
