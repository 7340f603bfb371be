package channelwise

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

var convolutions = []Depthwise{
	{2, 64, 1, span(9, 3, 1, 1, true), span(11, 3, 1, 1, true)},
	{1, 96, 1, span(7, 5, 1, 1, true), span(6, 5, 1, 1, true)},
	{2, 19, 1, span(12, 3, 2, 1, true), span(13, 3, 2, 1, true)},
	{1, 80, 1, span(12, 3, 2, 1, false), span(14, 4, 2, 1, false)},
	{1, 7, 3, span(8, 3, 1, 1, true), span(8, 3, 1, 1, true)},
	{3, 16, 2, span(9, 3, 2, 1, true), span(8, 2, 2, 1, true)},
	{1, 33, 1, span(15, 3, 1, 2, true), span(14, 3, 1, 3, true)},
	{1, 5, 1, span(17, 3, 2, 2, true), span(16, 4, 2, 3, false)},
	{1, 9, 1, span(20, 4, 4, 6, true), span(23, 3, 6, 4, true)},
	{2, 3, 1, span(9, 2, 3, 1, false), span(10, 1, 3, 1, true)}, // inputs without outputs
	{1, 4, 1, span(3, 7, 1, 1, true), span(2, 9, 1, 1, true)},
	{1, 6, 1, Span{5, 2, 9, 1, 1, 3}, Span{4, 2, 8, 1, 1, 2}}, // outputs without inputs
	{1, 48, 1, span(6, 3, 1, 1, true), span(31, 5, 1, 1, true)},
	{1, 200, 1, span(3, 3, 1, 1, true), span(160, 3, 1, 1, true)},  // several calls for a line
	{1, 40, 1, span(40, 3, 1, 1, true), span(25, 3, 1, 1, true)},   // several calls for a rectangle
	{2, 2, 40, span(30, 2, 9, 1, false), span(31, 2, 10, 3, true)}, // most of the input unused
	{0, 4, 1, span(3, 2, 1, 1, true), span(3, 2, 1, 1, true)},
	{2, 0, 1, span(3, 2, 1, 1, true), span(3, 2, 1, 1, true)},
	{1, 4, 1, span(2, 3, 1, 1, false), span(3, 2, 1, 1, true)}, // no output
}

// each calls f for every product with the indices of the elements of input, filter and output.
func (s *Depthwise) each(f func(x, w, y int)) {
	for b := range s.Batch {
		for oy := range s.Rows.Out {
			for ox := range s.Cols.Out {
				for ky := range s.Rows.Window {
					for kx := range s.Cols.Window {
						iy, ix := oy*s.Rows.Stride-s.Rows.Before+ky*s.Rows.Dilation, ox*s.Cols.Stride-s.Cols.Before+kx*s.Cols.Dilation
						if iy < 0 || iy >= s.Rows.In || ix < 0 || ix >= s.Cols.In {
							continue
						}
						for c := range s.Channels {
							for q := range s.Multiplier {
								f(((b*s.Rows.In+iy)*s.Cols.In+ix)*s.Channels+c, ((ky*s.Cols.Window+kx)*s.Channels+c)*s.Multiplier+q,
									(((b*s.Rows.Out+oy)*s.Cols.Out+ox)*s.Channels+c)*s.Multiplier+q)
							}
						}
					}
				}
			}
		}
	}
}

func TestDepthwise(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for i, s := range convolutions {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				testDepthwise[float32](t, &s, 1e-5)
				testDepthwise[float64](t, &s, 1e-13)
			})
		}
	})
}

func testDepthwise[T simd.Float](t *testing.T, s *Depthwise, tolerance float64) {
	t.Helper()
	random := func(n int) []T {
		v := make([]T, n)
		for i := range v {
			v[i] = T(rand.Float64() - 0.5)
		}
		return v
	}
	// Old values of the results must be overwritten.
	x, f, dy := random(s.Batch*s.imageIn()), random(s.filter()), random(s.Batch*s.imageOut())
	y, dx, df := random(len(dy)), random(len(x)), random(len(f))
	Convolve(s, y, x, f)
	ConvolveInputGrad(s, dx, dy, f)
	ConvolveFilterGrad(s, df, x, dy)
	wantY, wantDX, wantDF := make([]float64, len(y)), make([]float64, len(dx)), make([]float64, len(df))
	s.each(func(i, j, k int) {
		wantY[k] += float64(x[i]) * float64(f[j])
		wantDX[i] += float64(dy[k]) * float64(f[j])
		wantDF[j] += float64(dy[k]) * float64(x[i])
	})
	what := fmt.Sprintf("[%T] %+v", x[:0], *s)
	compare(t, "Convolve"+what, y, wantY, tolerance)
	compare(t, "ConvolveInputGrad"+what, dx, wantDX, tolerance)
	compare(t, "ConvolveFilterGrad"+what, df, wantDF, tolerance)
}
