package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
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

func random[T simd.Float](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = T(rand.Float64() - 0.5)
	}
	return s
}

// shape returns a convolution with square filter, stride and dilation, and SAME or VALID padding.
func shape(batch, h, w, c, filter, n, stride, dilation int, same bool) Shape {
	s := Shape{
		Batch: batch, InH: h, InW: w, InC: c, FilterH: filter, FilterW: filter, OutC: n,
		StrideH: stride, StrideW: stride, DilationH: dilation, DilationW: dilation,
	}
	reach := (filter-1)*dilation + 1
	s.OutH, s.OutW = max(0, (h-reach)/stride+1), max(0, (w-reach)/stride+1)
	if same {
		s.OutH, s.OutW = (h+stride-1)/stride, (w+stride-1)/stride
		s.PadTop = max(0, (s.OutH-1)*stride+reach-h) / 2
		s.PadLeft = max(0, (s.OutW-1)*stride+reach-w) / 2
	}
	return s
}

var shapes = []Shape{
	shape(2, 9, 9, 1, 5, 32, 1, 1, true),
	shape(2, 12, 12, 20, 3, 40, 1, 1, true),
	shape(1, 11, 16, 40, 3, 64, 1, 1, false),
	shape(3, 8, 30, 3, 3, 10, 1, 1, true),
	shape(2, 12, 18, 8, 3, 70, 1, 1, true),   // wide tiles
	shape(2, 7, 7, 10, 1, 20, 1, 1, true),    // pointwise
	shape(2, 15, 13, 9, 1, 20, 2, 1, true),   // pixels that no output reads
	shape(2, 15, 13, 9, 3, 20, 2, 1, true),   // strides
	shape(2, 16, 14, 9, 3, 20, 2, 1, false),  //
	shape(1, 25, 22, 3, 7, 33, 2, 1, true),   //
	shape(1, 13, 14, 8, 4, 9, 3, 1, true),    //
	shape(1, 17, 17, 8, 5, 9, 4, 1, false),   //
	shape(2, 19, 19, 8, 2, 5, 3, 1, false),   //
	shape(2, 20, 20, 12, 3, 17, 1, 2, true),  // dilation
	shape(1, 20, 20, 9, 3, 8, 1, 3, false),   //
	shape(2, 17, 17, 8, 3, 6, 2, 2, true),    // both
	shape(5, 3, 3, 8, 3, 16, 1, 1, true),     // narrow outputs
	shape(40, 2, 2, 16, 2, 24, 1, 1, false),  //
	shape(3, 6, 6, 16, 5, 16, 1, 1, true),    // few pixels, wide tiles
	shape(2, 5, 5, 4, 9, 4, 1, 1, true),      // a filter larger than the image
	shape(1, 40, 120, 18, 3, 10, 1, 1, true), // several chunks
	shape(1, 5, 5, 2, 7, 3, 1, 1, false),     // no output
	shape(0, 5, 5, 2, 3, 3, 1, 1, true),      // no image
	shape(2, 5, 5, 0, 3, 3, 1, 1, true),      // no input channel
	grouped(2, shape(2, 12, 12, 40, 3, 32, 1, 1, true)),
	grouped(4, shape(2, 9, 30, 64, 3, 64, 1, 1, true)),
	grouped(3, shape(2, 13, 14, 27, 3, 51, 2, 1, true)), // strides
	grouped(2, shape(1, 14, 14, 18, 3, 8, 1, 2, false)), // dilation
	grouped(3, shape(2, 7, 7, 9, 1, 21, 1, 1, true)),    // pointwise
	grouped(4, shape(2, 8, 9, 8, 3, 12, 1, 1, true)),    // two channels
	grouped(5, shape(2, 8, 9, 5, 3, 5, 1, 1, true)),     // one channel
	grouped(2, shape(3, 3, 3, 16, 3, 32, 1, 1, true)),   // narrow
	grouped(2, shape(2, 17, 17, 16, 3, 6, 2, 2, true)),  // strides and dilation
	{Batch: 2, InH: 11, InW: 14, InC: 9, FilterH: 2, FilterW: 4, OutH: 9, OutW: 5, OutC: 18, StrideH: 1, StrideW: 3,
		DilationH: 1, DilationW: 1, PadTop: 0, PadLeft: 2},
	{Batch: 1, InH: 10, InW: 10, InC: 8, FilterH: 3, FilterW: 3, OutH: 14, OutW: 15, OutC: 16, StrideH: 1, StrideW: 1,
		DilationH: 1, DilationW: 2, PadTop: 4, PadLeft: 5}, // padding wider than the filter
}

func grouped(groups int, s Shape) Shape {
	s.Groups = groups
	return s
}

// reference computes all three results in float64 by their definition.
func reference[T simd.Float](s *Shape, x, f, dy []T) (y, dx, df []float64) {
	y, dx, df = make([]float64, s.outputs()), make([]float64, s.inputs()), make([]float64, s.filter())
	s.each(func(out, in, tap int) {
		for n := range s.OutC {
			for c := range s.groupIn() {
				o, i, k := out*s.OutC+n, in*s.InC+n/s.groupOut()*s.groupIn()+c, (tap*s.groupIn()+c)*s.OutC+n
				y[o] += float64(x[i]) * float64(f[k])
				dx[i] += float64(dy[o]) * float64(f[k])
				df[k] += float64(dy[o]) * float64(x[i])
			}
		}
	})
	return y, dx, df
}

// each calls f for every output pixel, every input pixel that it depends on, and the filter element
// between them.
func (s *Shape) each(f func(out, in, tap int)) {
	for b := range s.Batch {
		for oy := range s.OutH {
			for ox := range s.OutW {
				for a := range s.FilterH {
					for q := range s.FilterW {
						iy, ix := oy*s.StrideH-s.PadTop+a*s.DilationH, ox*s.StrideW-s.PadLeft+q*s.DilationW
						if iy >= 0 && iy < s.InH && ix >= 0 && ix < s.InW {
							f((b*s.OutH+oy)*s.OutW+ox, (b*s.InH+iy)*s.InW+ix, a*s.FilterW+q)
						}
					}
				}
			}
		}
	}
}

func compare[T simd.Float](t *testing.T, what string, got []T, want []float64, terms int) {
	t.Helper()
	tolerance := 1e-6 * math.Sqrt(float64(terms)+1)
	if _, ok := any(T(0)).(float64); ok {
		tolerance *= 1e-8
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tolerance) {
			t.Fatalf("%s[%T]: element %d is %v, want %v", what, got[i], i, got[i], w)
		}
	}
}

func TestConvolution(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for i, s := range shapes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				testConvolution[float32](t, &s)
				if i%3 == 0 {
					testConvolution[float64](t, &s)
				}
			})
		}
	})
}

func testConvolution[T simd.Float](t *testing.T, s *Shape) {
	t.Helper()
	x, f, dy := random[T](s.inputs()), random[T](s.filter()), random[T](s.outputs())
	y, dx, df := reference(s, x, f, dy)
	// Old values of the results must not matter.
	nan := func(n int) []T { return slices.Repeat([]T{T(math.NaN())}, n) }
	gy, gdx, gdf := nan(len(y)), nan(len(dx)), nan(len(df))
	Forward(s, gy, x, f, Epilogue[T]{})
	compare(t, fmt.Sprintf("Forward %+v", *s), gy, y, s.patch())
	InputGrad(s, gdx, dy, f, false)
	compare(t, fmt.Sprintf("InputGrad %+v", *s), gdx, dx, s.FilterH*s.FilterW*s.groupOut())
	FilterGrad(s, gdf, x, dy, false)
	compare(t, fmt.Sprintf("FilterGrad %+v", *s), gdf, df, s.Batch*s.pixels())

	double := func(x []float64) []float64 {
		twice := make([]float64, len(x))
		for i, v := range x {
			twice[i] = 2 * v
		}
		return twice
	}
	Forward(s, gy, x, f, Epilogue[T]{Add: true})
	compare(t, fmt.Sprintf("Forward added %+v", *s), gy, double(y), 2*s.patch())
	InputGrad(s, gdx, dy, f, true)
	compare(t, fmt.Sprintf("InputGrad added %+v", *s), gdx, double(dx), 2*s.FilterH*s.FilterW*s.OutC)
	FilterGrad(s, gdf, x, dy, true)
	compare(t, fmt.Sprintf("FilterGrad added %+v", *s), gdf, double(df), 2*s.Batch*s.pixels())

	bias := random[T](s.OutC)
	for i := range y {
		y[i] = max(0, y[i]+float64(bias[i%s.OutC]))
	}
	Forward(s, gy, x, f, Epilogue[T]{Bias: bias, Relu: true})
	compare(t, fmt.Sprintf("Forward with bias and relu %+v", *s), gy, y, s.patch())
}

// TestBFloat16 compares results with float64 products of the bfloat16 operands.
func TestBFloat16(t *testing.T) {
	short := func(n int) (bits []uint16, values []float32) {
		values, bits = random[float32](n), make([]uint16, n)
		for i, v := range values {
			bits[i] = uint16(math.Float32bits(v) >> 16)
			values[i] = math.Float32frombits(uint32(bits[i]) << 16)
		}
		return bits, values
	}
	defer func(old bool) { microkernel.SlowPairs = old }(microkernel.SlowPairs)
	microkernel.SlowPairs = false
	atLevels(t, func(t *testing.T) {
		done := 0
		for _, s := range shapes {
			bx, x := short(s.inputs())
			bf, f := short(s.filter())
			bdy, dy := short(s.outputs())
			y, dx, df := reference(&s, x, f, dy)
			gy, gdx, gdf := make([]float32, len(y)), make([]float32, len(dx)), make([]float32, len(df))
			if ForwardBFloat16(&s, gy, bx, bf) {
				compare(t, fmt.Sprintf("Forward %+v", s), gy, y, s.patch())
				done++
			}
			if InputGradBFloat16(&s, gdx, bdy, bf) {
				compare(t, fmt.Sprintf("InputGrad %+v", s), gdx, dx, s.FilterH*s.FilterW*s.OutC)
				done++
			}
			if FilterGradBFloat16(&s, gdf, bx, bdy) {
				compare(t, fmt.Sprintf("FilterGrad %+v", s), gdf, df, s.Batch*s.pixels())
				done++
			}
		}
		if want := microkernel.Pairs() != nil; want != (done > 30) {
			t.Errorf("%d convolutions of bfloat16, and the processor has its instructions: %v", done, want)
		}
	})
}

// TestSameBits runs with one to four threads. The outputs and the input's gradient must be
// bit-identical. The filter's gradient must be the same for every run with one number of threads.
func TestSameBits(t *testing.T) {
	s := shape(7, 20, 20, 16, 3, 24, 1, 1, true)
	x, f, dy := random[float32](s.inputs()), random[float32](s.filter()), random[float32](s.outputs())
	var y, dx []float32
	for threads := range 4 {
		old := parallel.SetThreads(threads + 1)
		gy, gdx := make([]float32, s.outputs()), make([]float32, s.inputs())
		Forward(&s, gy, x, f, Epilogue[float32]{})
		InputGrad(&s, gdx, dy, f, false)
		var df []float32
		for range 5 {
			gdf := make([]float32, s.filter())
			FilterGrad(&s, gdf, x, dy, false)
			if df != nil && !slices.Equal(gdf, df) {
				t.Errorf("two gradients of a filter with %d threads differ", threads+1)
			}
			df = gdf
		}
		parallel.SetThreads(old)
		if y == nil {
			y, dx = gy, gdx
		}
		if !slices.Equal(gy, y) || !slices.Equal(gdx, dx) {
			t.Errorf("results with %d threads differ from those with one", threads+1)
		}
	}
}

func TestChecks(t *testing.T) {
	good := shape(1, 5, 5, 2, 3, 4, 1, 1, true)
	x, f, y := make([]float32, good.inputs()), make([]float32, good.filter()), make([]float32, good.outputs())
	bad := good
	bad.StrideH = 0
	for name, call := range map[string]func(){
		"no stride":     func() { Forward(&bad, y, x, f, Epilogue[float32]{}) },
		"short input":   func() { Forward(&good, y, x[1:], f, Epilogue[float32]{}) },
		"short filter":  func() { InputGrad(&good, x, y, f[1:], false) },
		"short results": func() { FilterGrad(&good, f[1:], x, y, false) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

// TestSharedFilter checks that the result of an image does not depend on the images that share a
// large filter with it.
func TestSharedFilter(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(1))
	s := shape(5, 4, 4, 128, 3, 130, 1, 1, true)
	one := s
	one.Batch = 1
	x, f, dy := random[float32](s.inputs()), random[float32](s.filter()), random[float32](s.outputs())
	y, dx := make([]float32, s.outputs()), make([]float32, s.inputs())
	e := Epilogue[float32]{Bias: random[float32](s.OutC), Relu: true}
	Forward(&s, y, x, f, e)
	InputGrad(&s, dx, dy, f, false)
	gy, gdx := make([]float32, one.outputs()), make([]float32, one.inputs())
	for i := range s.Batch {
		Forward(&one, gy, x[i*len(gdx):], f, e)
		InputGrad(&one, gdx, dy[i*len(gy):], f, false)
		if !slices.Equal(gy, y[i*len(gy):][:len(gy)]) || !slices.Equal(gdx, dx[i*len(gdx):][:len(gdx)]) {
			t.Errorf("image %d: the convolution or its gradient differs among others", i)
		}
	}
}
