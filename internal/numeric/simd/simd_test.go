package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths contains empty slices, partial vectors, whole vectors, unrolled blocks with every kind of
// remainder, and more than one piece.
var lengths = []int{0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 257, 1000, piece + 5}

// atLevels runs the test at every level that the processor supports.
func atLevels(t *testing.T, test func(t *testing.T)) {
	for _, l := range Levels() {
		t.Run(l.String(), func(t *testing.T) {
			old := Force(l)
			defer Force(old)
			test(t)
		})
	}
}

// guarded returns n random elements in [lo, hi) at an odd address. check fails if the elements
// around them were overwritten.
func guarded[T Float](n int, lo, hi float64) (s []T, check func(t *testing.T)) {
	const guard = 123456
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	all := make([]T, n+34)
	for i := range all {
		all[i] = guard
	}
	s = all[17 : 17+n : 17+n]
	for i := range s {
		s[i] = T(lo + (hi-lo)*rng.Float64())
	}
	return s, func(t *testing.T) {
		t.Helper()
		for i, x := range all {
			if (i < 17 || i >= 17+n) && x != guard {
				t.Fatalf("element %d of a slice of %d was overwritten", i-17, n)
			}
		}
	}
}

func random[T Float](n int, lo, hi float64) []T {
	s, _ := guarded[T](n, lo, hi)
	return s
}

// ulps returns the distance of got from want in ULP of T.
func ulps[T Float](got T, want float64) float64 {
	g := float64(got)
	if math.IsNaN(g) && math.IsNaN(want) || g == want {
		return 0
	}
	w := T(want)
	if w == got {
		return 0.5
	}
	if math.IsNaN(g) || math.IsNaN(want) || math.IsInf(float64(w), 0) || math.IsInf(g, 0) {
		return math.Inf(1)
	}
	unit := math.Abs(want) * 0x1p-52
	if isFloat32[T]() {
		_, e := math.Frexp(want)
		unit = math.Ldexp(1, max(e, -125)-24)
	}
	return math.Abs(g-want) / unit
}

type unaryCase[T Float] struct {
	name   string
	f      func(dst, src []T)
	want   func(x float64) float64
	lo, hi float64
	ulps   float64
}

func unaryCases[T Float]() []unaryCase[T] {
	return []unaryCase[T]{
		{"Neg", Neg[T], func(x float64) float64 { return -x }, -9, 9, 0},
		{"Abs", Abs[T], math.Abs, -9, 9, 0},
		{"Square", Square[T], func(x float64) float64 { return x * x }, -9, 9, 0.5},
		{"Sqrt", Sqrt[T], math.Sqrt, 0, 9, 0.5},
		{"Rsqrt", Rsqrt[T], func(x float64) float64 { return 1 / math.Sqrt(x) }, 0.01, 9, 1.5},
		{"Reciprocal", Reciprocal[T], func(x float64) float64 { return 1 / x }, -9, 9, 0.5},
		{"Relu", Relu[T], func(x float64) float64 { return max(x, 0) }, -9, 9, 0},
		{"Exp", Exp[T], math.Exp, -87, 88, 1.5}, // includes the error of math.Exp
		{"Log", Log[T], math.Log, 1e-30, 30, 1},
		{"Tanh", Tanh[T], math.Tanh, -10, 10, 3},
		{"Log1p", Log1p[T], math.Log1p, -0.9, 30, 3},
		{"Expm1", Expm1[T], math.Expm1, -20, 20, 3},
		{"Erf", Erf[T], math.Erf, -5, 5, 5},
		{"Sin", Sin[T], math.Sin, -9, 9, 2},
		{"Cos", Cos[T], math.Cos, -9, 9, 2},
		{"Floor", Floor[T], math.Floor, -9, 9, 0},
		{"Ceil", Ceil[T], math.Ceil, -9, 9, 0},
		{"Rint", Rint[T], math.RoundToEven, -9, 9, 0},
		{"Sign", Sign[T], func(x float64) float64 { return math.Copysign(1, x) }, -9, 9, 0},
		{"Sigmoid", Sigmoid[T], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -80, 30, 3},
	}
}

func TestUnary(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testUnary[float32](t)
		testUnary[float64](t)
	})
}

func testUnary[T Float](t *testing.T) {
	for _, tt := range unaryCases[T]() {
		for _, n := range lengths {
			src := random[T](n, tt.lo, tt.hi)
			dst, check := guarded[T](n, 0, 1)
			tt.f(dst, src)
			check(t)
			for i, x := range src {
				want := tt.want(float64(x))
				if d := ulps(dst[i], want); d > tt.ulps {
					t.Fatalf("%s[%T](%v) = %v, want %v: %.2f ULP, at %d of %d", tt.name, x, x, dst[i], want, d, i, n)
				}
			}
		}
	}
}

type binaryCase[T Float] struct {
	name string
	f    func(dst, a, b []T)
	want func(a, b float64) float64
	ulps float64
}

func binaryCases[T Float]() []binaryCase[T] {
	cases := []binaryCase[T]{
		{"Add", Add[T], func(a, b float64) float64 { return a + b }, 0.5},
		{"Sub", Sub[T], func(a, b float64) float64 { return a - b }, 0.5},
		{"Mul", Mul[T], func(a, b float64) float64 { return a * b }, 0.5},
		{"Div", Div[T], func(a, b float64) float64 { return a / b }, 0.5},
		{"Max", Max[T], func(a, b float64) float64 { return max(a, b) }, 0},
		{"Min", Min[T], func(a, b float64) float64 { return min(a, b) }, 0},
		{"SquaredDifference", SquaredDifference[T], func(a, b float64) float64 { return (a - b) * (a - b) }, 3},
		{"ReluGrad", ReluGrad[T], func(a, b float64) float64 {
			if b > 0 {
				return a
			}
			return a * 0
		}, 0},
		{"TanhGrad", func(dst, a, b []T) {
			for i := range b {
				b[i] /= 4 // the range of tanh, without cancellation near 1
			}
			TanhGrad(dst, a, b)
		}, func(a, b float64) float64 { return a * (1 - b*b) }, 4},
		{"SigmoidGrad", SigmoidGrad[T], func(a, b float64) float64 { return a * (1 - b) * b }, 4},
		{"Pow", Pow[T], math.Pow, 1},
		{"Clamp", func(dst, a, b []T) { Clamp(dst, a, -1, 2) }, func(a, b float64) float64 { return min(max(a, -1), 2) }, 0},
		{"Clamp without bounds", func(dst, a, b []T) { Clamp(dst, a, T(math.NaN()), T(math.NaN())) },
			func(a, b float64) float64 { return a }, 0},
		{"Add4", func(dst, a, b []T) { Add4(dst, a, b, a, b) }, func(a, b float64) float64 { return float64(T(a) + T(b) + T(a) + T(b)) }, 0},
		{"DivNoNaN", func(dst, a, b []T) { DivNoNaN(dst, a, everyFourthZero(b)) }, func(a, b float64) float64 {
			if b == 0 {
				return 0
			}
			return a / b
		}, 0.5},
		{"MulNoNaN", func(dst, a, b []T) { MulNoNaN(dst, a, everyFourthZero(b)) }, func(a, b float64) float64 {
			if b == 0 {
				return 0
			}
			return a * b
		}, 0.5},
	}
	for _, s := range []struct {
		name string
		f    func(dst, a []T, b T)
		want func(a, b float64) float64
	}{
		{"AddScalar", AddScalar[T], func(a, b float64) float64 { return a + b }},
		{"SubScalar", SubScalar[T], func(a, b float64) float64 { return a - b }},
		{"MulScalar", MulScalar[T], func(a, b float64) float64 { return a * b }},
		{"DivScalar", DivScalar[T], func(a, b float64) float64 { return a / b }},
		{"MaxScalar", MaxScalar[T], func(a, b float64) float64 { return max(a, b) }},
		{"MinScalar", MinScalar[T], func(a, b float64) float64 { return min(a, b) }},
		{"ScalarSub", func(dst, a []T, b T) { ScalarSub(dst, b, a) }, func(a, b float64) float64 { return b - a }},
		{"ScalarDiv", func(dst, a []T, b T) { ScalarDiv(dst, b, a) }, func(a, b float64) float64 { return b / a }},
	} {
		// Compare with a second slice that holds the number throughout.
		cases = append(cases, binaryCase[T]{s.name, func(dst, a, b []T) {
			if len(b) == 0 {
				s.f(dst, a, 3)
				return
			}
			for i := range b {
				b[i] = b[0]
			}
			s.f(dst, a, b[0])
		}, s.want, 0.5})
	}
	return cases
}

func everyFourthZero[T Float](x []T) []T {
	for i := 0; i < len(x); i += 4 {
		x[i] = 0
	}
	return x
}

func TestBinary(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testBinary[float32](t)
		testBinary[float64](t)
	})
}

func testBinary[T Float](t *testing.T) {
	for _, tt := range binaryCases[T]() {
		for _, n := range lengths {
			a, b := random[T](n, -3, 3), random[T](n+1, -3, 3)[1:]
			dst, check := guarded[T](n, 0, 1)
			tt.f(dst, a, b)
			check(t)
			for i := range a {
				want := tt.want(float64(a[i]), float64(b[i]))
				if d := ulps(dst[i], want); d > tt.ulps && math.Abs(float64(dst[i])-want) > 1e-16 {
					t.Fatalf("%s[%T](%v, %v) = %v, want %v: %.2f ULP, at %d of %d", tt.name, a[i], a[i], b[i], dst[i], want, d, i, n)
				}
			}
		}
	}
}

func TestFill(t *testing.T) {
	const quiet, signaling = 0xffc00001, 0x7fa00003 // bits of NaN are preserved
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			a, b := make([]uint32, n+1), make([]uint64, n+1)
			Fill(a[:n], signaling)
			Fill(b[:n], quiet<<32|signaling)
			for i := range n {
				if a[i] != signaling || b[i] != quiet<<32|signaling {
					t.Fatalf("%d elements are %x and %x at %d", n, a[i], b[i], i)
				}
			}
			if a[n] != 0 || b[n] != 0 {
				t.Fatalf("the element after %d is overwritten", n)
			}
		}
	})
}

func TestInPlace(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, n := range lengths {
			a, b := random[float32](n, -3, 3), random[float32](n, 1, 3)
			want := make([]float32, n)
			Div(want, a, b)
			left, right := slices.Clone(a), slices.Clone(b)
			Div(left, left, b)
			Div(right, a, right)
			if !slices.Equal(left, want) || !slices.Equal(right, want) {
				t.Errorf("division of %d elements in place differs", n)
			}
		}
	})
}

func TestSpecialValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name      string
		f         func(dst, src []float32)
		src, want []float32
	}{
		{"Exp", Exp[float32],
			[]float32{nan, inf, -inf, 0, 88.72, 88.73, 1000, -1000, -87.3, -104},
			[]float32{nan, inf, 0, 1, 3.3931806e+38, inf, inf, 0, 1.2192433e-38, 0}},
		{"Log", Log[float32],
			[]float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1, -1, 3.4028235e38},
			[]float32{nan, inf, nan, -inf, -inf, 0, nan, 88.72284}},
		{"Tanh", Tanh[float32],
			[]float32{nan, inf, -inf, 0, 9.1, -9.1, 1e30, -1e30, 1e-20, -1e-20},
			[]float32{nan, 1, -1, 0, 1, -1, 1, -1, 1e-20, -1e-20}},
		{"Sigmoid", Sigmoid[float32],
			[]float32{nan, inf, -inf, 0, 100, -104},
			[]float32{nan, 1, 0, 0.5, 1, 0}},
		{"Relu", Relu[float32], []float32{nan, inf, -inf, 0, -1, 1}, []float32{nan, inf, 0, 0, 0, 1}},
		{"Sqrt", Sqrt[float32], []float32{nan, inf, -1, 0}, []float32{nan, inf, nan, 0}},
		{"Rsqrt", Rsqrt[float32], []float32{nan, inf, -1, 0}, []float32{nan, 0, nan, inf}},
	}
	atLevels(t, func(t *testing.T) {
		for _, tt := range tests {
			// Once in the masked remainder, once in the unrolled part.
			for _, pad := range []int{0, 200} {
				src := append(append([]float32(nil), tt.src...), make([]float32, pad)...)
				dst := make([]float32, len(src))
				tt.f(dst, src)
				for i, want := range tt.want {
					if d := ulps(dst[i], float64(want)); d > 1 && !(want == 0 && dst[i] < 1e-38) {
						t.Errorf("%s(%v) = %v, want %v", tt.name, src[i], dst[i], want)
					}
				}
			}
		}
	})
}

// TestPowSpecialValues compares all pairs of special bases and exponents with the results of Go.
func TestPowSpecialValues(t *testing.T) {
	inf := float32(math.Inf(1))
	special := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5,
		1e30, -1e30, 1e-30, 16777215, -16777215, 16777216, 33554433, 0.99999994, 1.0000001}
	var a, b, want []float32
	for _, x := range special {
		for _, y := range special {
			a, b, want = append(a, x), append(b, y), append(want, float32(math.Pow(float64(x), float64(y))))
		}
	}
	dst := make([]float32, len(a))
	atLevels(t, func(t *testing.T) {
		Pow(dst, a, b)
		for i, w := range want {
			if w != 0 && math.Abs(float64(w)) < 0x1p-126 {
				w = 0
			}
			if d := ulps(dst[i], float64(w)); d > 1 || math.Signbit(float64(w)) != math.Signbit(float64(dst[i])) && w == w {
				t.Errorf("Pow(%v, %v) = %v, want %v", a[i], b[i], dst[i], w)
			}
		}
	})
}

func TestMaxMinOfNaN(t *testing.T) {
	nan := float32(math.NaN())
	atLevels(t, func(t *testing.T) {
		for _, f := range []func(dst, a, b []float32){Max[float32], Min[float32]} {
			dst := make([]float32, 3)
			f(dst, []float32{nan, 1, nan}, []float32{1, nan, nan})
			if dst[0] == dst[0] || dst[1] == dst[1] || dst[2] == dst[2] {
				t.Errorf("extremes with NaN are %v", dst)
			}
		}
		for _, n := range lengths[1:] {
			x := random[float32](n, -1, 1)
			x[n/2] = nan
			if m := MaxOf(x); m == m {
				t.Errorf("MaxOf of %d elements with a NaN is %v", n, m)
			}
			if m := MinOf(x); m == m {
				t.Errorf("MinOf of %d elements with a NaN is %v", n, m)
			}
		}
	})
}

func TestForce(t *testing.T) {
	defer Force(Current())
	if got := startLevel("generic"); got != Generic {
		t.Errorf("%s=generic gives %v", EnvLevel, got)
	}
	if got := startLevel("no such level"); got != best {
		t.Errorf("an unknown level gives %v, want %v", got, best)
	}
	for _, l := range Levels() {
		Force(l)
		if Current() != l || startLevel(l.String()) != l {
			t.Errorf("level %v cannot be chosen", l)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Force accepted an unsupported level")
		}
	}()
	Force(best + 1)
}

// TestDenormals checks that vector code treats denormal numbers as zero, and that the following Go
// code does not.
func TestDenormals(t *testing.T) {
	tiny, half := []float32{1e-40, 1}, []float32{0.5, 0.5}
	atLevels(t, func(t *testing.T) {
		dst := make([]float32, 2)
		Mul(dst, tiny, half)
		if vector := Current() != Generic; vector != (dst[0] == 0) {
			t.Errorf("product of a denormal number is %v", dst[0])
		}
		if x := tiny[0] * half[0]; x == 0 {
			t.Error("denormals are disabled after vector code")
		}
	})
}
