package simd

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	every   = flag.Uint64("every", 4099, "measure the errors of every n-th float32")
	billion = flag.Bool("billion", false, "sum a billion elements")
)

// accurate lists the functions whose errors docs/reference/accuracy.md bounds.
var accurate = []struct {
	name  string
	f32   func(dst, src []float32)
	f64   func(dst, src []float64)
	near  func(x float64) float64       // reference for float32
	exact func(x *big.Float) *big.Float // and for float64
	// largest magnitude of the arguments tested for float64
	most float64
}{
	{"exp", Exp[float32], Exp[float64], math.Exp, exactExp, 708},
	{"log", Log[float32], Log[float64], math.Log, exactLog, 1e300},
	{"tanh", Tanh[float32], Tanh[float64], math.Tanh, exactTanh, 30},
	{"sigmoid", Sigmoid[float32], Sigmoid[float64], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, exactSigmoid, 700},
	{"erf", Erf[float32], Erf[float64], math.Erf, exactErf, 6},
	{"rsqrt", Rsqrt[float32], Rsqrt[float64], func(x float64) float64 { return 1 / math.Sqrt(x) }, exactRsqrt, 1e300},
	{"log1p", Log1p[float32], Log1p[float64], math.Log1p, exactLog1p, 1e300},
	{"expm1", Expm1[float32], Expm1[float64], math.Expm1, exactExpm1, 700},
	{"sin", Sin[float32], Sin[float64], math.Sin, func(x *big.Float) *big.Float { return exactSin(x, 0) }, 1e6},
	{"cos", Cos[float32], Cos[float64], math.Cos, func(x *big.Float) *big.Float { return exactSin(x, 1) }, 1e6},
}

// TestSpecialValues64 tests arguments without a measurable error. Any two NaN are considered equal.
func TestSpecialValues64(t *testing.T) {
	special := []float64{math.NaN(), math.Float64frombits(0xfff8000000000000), math.Float64frombits(0x7fffffffffffffff),
		math.Inf(1), math.Inf(-1), 0, 1}
	atLevels(t, func(t *testing.T) {
		for _, f := range accurate {
			for _, pad := range []int{0, 200} { // in the masked remainder, and in the unrolled part
				dst, src := make([]float64, len(special)+pad), append(slices.Clone(special), make([]float64, pad)...)
				f.f64(dst, src)
				for i, x := range special {
					if d := ulps(float32(dst[i]), f.near(x)); d > 1 {
						t.Errorf("%s(%v) = %v, want %v", f.name, x, dst[i], f.near(x))
					}
				}
			}
		}
	})
}

// documented returns the bounds in docs/reference/accuracy.md, in ULP, by function: for float32 and
// for float64.
func documented(t *testing.T) map[string][2]float64 {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	bounds := map[string][2]float64{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 {
			continue
		}
		single, err1 := strconv.ParseFloat(strings.TrimSpace(cells[1]), 64)
		double, err2 := strconv.ParseFloat(strings.TrimSpace(cells[2]), 64)
		if err1 == nil && err2 == nil {
			bounds[strings.TrimSpace(cells[0])] = [2]float64{single, double}
		}
	}
	return bounds
}

// worst is the largest error and its argument.
type worst struct {
	ulps float64
	at   string
}

func (w *worst) see(ulps float64, at ...any) {
	if ulps > w.ulps {
		w.ulps, w.at = ulps, fmt.Sprint(at...)
	}
}

func (w *worst) check(t *testing.T, name string, bound float64) {
	t.Helper()
	t.Logf("%s: %.3f ULP at %s", name, w.ulps, w.at)
	if !(w.ulps <= bound) {
		t.Errorf("%s is %.3f ULP off at %s; the documentation promises %v", name, w.ulps, w.at, bound)
	}
}

// TestAccuracy tests float32 bit patterns of both signs over the whole range.
func TestAccuracy(t *testing.T) {
	bounds, step := documented(t), *every
	const block = 1 << 16
	src, dst := make([]float32, block), make([]float32, block)
	atLevels(t, func(t *testing.T) {
		for _, f := range accurate {
			var w worst
			for bits := uint64(0); bits < 1<<32; {
				n := 0
				for ; n < block && bits < 1<<32; n, bits = n+1, bits+step {
					src[n] = math.Float32frombits(uint32(bits))
				}
				f.f32(dst[:n], src)
				for i, x := range src[:n] {
					if isNormal(float64(x), 0x1p-126) {
						w.see(ulpsOrDenormal(dst[i], f.near(float64(x)), 0x1p-126), x)
					}
				}
			}
			w.check(t, f.name, bounds[f.name][0])
		}
	})
}

// isNormal reports whether a number is not denormal. The vector levels treat denormals as zero.
func isNormal(x, least float64) bool { return x == 0 || !(math.Abs(x) < least) }

// ulpsOrDenormal is like ulps for normal results. A denormal result is accepted if it is close to
// zero.
func ulpsOrDenormal[T Float](got T, want, least float64) float64 {
	if math.Abs(want) < least && math.Abs(float64(got)) <= least {
		return 0
	}
	return ulps(got, want)
}

// TestAccuracy64 tests float64 of all magnitudes against references of much higher precision.
func TestAccuracy64(t *testing.T) {
	const n = 1500
	src, want := make([][]float64, len(accurate)), make([][]*big.Float, len(accurate))
	for k, f := range accurate {
		src[k] = arguments64(f.name, f.most, n)
		for _, x := range src[k] {
			want[k] = append(want[k], f.exact(newExact(x)))
		}
	}
	bounds := documented(t)
	atLevels(t, func(t *testing.T) {
		dst := make([]float64, n)
		for k, f := range accurate {
			f.f64(dst, src[k])
			var w worst
			for i, x := range src[k] {
				w.see(exactULPs(dst[i], want[k][i]), x)
			}
			w.check(t, f.name, bounds[f.name][1])
		}
	})
}

// arguments64 returns arguments of a function: half of them below 8, and the others of magnitudes
// up to most.
func arguments64(name string, most float64, n int) []float64 {
	rng := rand.New(rand.NewPCG(3, 5))
	src := make([]float64, n)
	for i := range src {
		x := most * math.Exp2(-30*rng.Float64())
		if i%2 == 0 {
			x = min(most, 8*rng.Float64())
		}
		negative := name != "log" && name != "rsqrt" && (name != "log1p" || x < 1)
		if i%3 == 0 && negative {
			x = -x
		}
		src[i] = x
	}
	return src
}

// exactULPs returns the distance of a normal number from want in ULP of float64.
func exactULPs(got float64, want *big.Float) float64 {
	if math.IsNaN(got) || math.IsInf(got, 0) {
		return math.Inf(1)
	}
	d, _ := less(newExact(got), want).Float64()
	w, _ := want.Float64()
	_, e := math.Frexp(w)
	return math.Abs(d) / math.Ldexp(1, max(e, -1021)-53)
}

// TestPowAccuracy tests bases of all magnitudes with exponents for which the power is in range.
func TestPowAccuracy(t *testing.T) {
	n := 1 << 32 / int(*every)
	bounds := documented(t)["pow"]
	rng := rand.New(rand.NewPCG(1, 9))
	const block = 1 << 14
	a, b, dst := make([]float32, block), make([]float32, block), make([]float32, block)
	found := map[Level]*worst{Generic: {}, AVX2: {}, AVX512: {}}
	for range n / block {
		for i := range a {
			a[i] = math.Float32frombits(rng.Uint32N(0x7f000000) + 0x800000)
			if i%2 == 0 {
				a[i] = 1 + (rng.Float32()-0.5)*rng.Float32() // near 1: large exponents
			}
			b[i] = float32((rng.Float64()*2 - 1) * 127 / math.Abs(math.Log2(float64(a[i]))))
		}
		for _, l := range Levels() {
			old := Force(l)
			Pow(dst, a, b)
			Force(old)
			for i, x := range a {
				if isNormal(float64(b[i]), 0x1p-126) && !math.IsInf(float64(b[i]), 0) {
					found[l].see(ulpsOrDenormal(dst[i], math.Pow(float64(x), float64(b[i])), 0x1p-126), x, " to the ", b[i])
				}
			}
		}
	}
	for _, l := range Levels() {
		t.Run(l.String(), func(t *testing.T) { found[l].check(t, "pow", bounds[0]) })
	}
	t.Run("float64", func(t *testing.T) {
		var w worst
		for range 500 {
			x, y := math.Exp2(60*rng.Float64()-30), 40*rng.Float64()-20
			d := []float64{0}
			Pow(d, []float64{x}, []float64{y})
			w.see(exactULPs(d[0], exactPow(newExact(x), newExact(y))), x, " to the ", y)
		}
		w.check(t, "pow", bounds[1])
	})
}
