package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// h is a 16-bit type that represents its bits.
type h uint16

func (v h) Float32() float32 { return math.Float32frombits(uint32(v) << 16) }

func bfloat(x float32) h {
	b := math.Float32bits(x)
	if x != x {
		return h(b>>16 | 0x40)
	}
	return h((b + 0x7fff + b>>16&1) >> 16)
}

// special holds numbers at which conversions and comparisons differ.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1.5, -2.5, 65504, 65519, 65520, 1e-8, -6e-8, 6.1e-5, 5e-39,
	2147483520, 2147483648, -2147483648, -2147483904, 3e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1 + 1.0/256, 1 + 3.0/256, 1 + 1.0/2048, 1 + 3.0/2048,
}

func mixed(n int) []float32 {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	out := make([]float32, n)
	for i := range out {
		if i%3 == 0 {
			out[i] = special[rng.IntN(len(special))]
		} else {
			out[i] = float32(rng.NormFloat64() * 100)
		}
	}
	return out
}

// same compares the results of every level with those of the generic level.
func same[D, S any](t *testing.T, src func(n int) []S, f func(dst []D, src []S), equal func(a, b D) bool) {
	t.Helper()
	for _, n := range lengths {
		x := src(n)
		got, want := make([]D, n+1), make([]D, n+1)
		f(got[:n], x)
		old := Force(Generic)
		f(want[:n], x)
		Force(old)
		if !slices.EqualFunc(got, want, equal) {
			t.Fatalf("of %d elements %v: got %v, want %v", n, x, got, want)
		}
	}
}

func bitEqual(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestConversions(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		bytes := func(n int) []uint8 {
			out := make([]uint8, n)
			for i := range out {
				out[i] = uint8(i * 37)
			}
			return out
		}
		ints := func(n int) []int32 {
			out := make([]int32, n)
			for i := range out {
				out[i] = int32(i) * 123456789
			}
			return out
		}
		shorts := func(n int) []h {
			out := make([]h, n)
			for i := range out {
				out[i] = h(i * 257)
			}
			return out
		}
		doubles := func(n int) []float64 {
			out := make([]float64, n)
			for i, x := range mixed(n) {
				out[i] = float64(x) * (1 + 1e-9)
			}
			return out
		}
		whole := func(a, b int32) bool { return a == b }
		short := func(a, b h) bool { return a == b }
		same(t, bytes, FromUint8, bitEqual)
		same(t, bytes, func(dst []float32, src []uint8) {
			signed := make([]int8, len(src))
			for i, v := range src {
				signed[i] = int8(v)
			}
			FromInt8(dst, signed)
		}, bitEqual)
		same(t, bytes, Int64FromUint8, func(a, b int64) bool { return a == b })
		same(t, mixed, ToBytes, func(a, b uint8) bool { return a == b })
		same(t, ints, FromInt32, bitEqual)
		same(t, mixed, ToInt32, whole)
		same(t, shorts, FromBFloat, bitEqual)
		same(t, mixed, func(dst []h, src []float32) { ToBFloat(dst, src, bfloat) }, short)
		same(t, mixed, ToDouble, func(a, b float64) bool { return a == b || a != a && b != b })
		same(t, doubles, FromDouble, bitEqual)
	})
}

func TestCompareMagnitude(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		for _, p := range []Predicate{Equal, Less} {
			for _, b := range []float32{2.5, float32(math.Inf(1))} {
				same(t, mixed, func(dst []bool, src []float32) { CompareMagnitude(p, dst, src, b) }, func(a, b bool) bool { return a == b })
				same(t, mixed, func(dst []bool, src []float32) {
					wide := make([]float64, len(src))
					ToDouble(wide, src)
					CompareMagnitude(p, dst, wide, float64(b))
				}, func(a, b bool) bool { return a == b })
			}
		}
	})
}

func TestHalves(t *testing.T) {
	one := func(float32) h { t.Fatal("not a whole vector"); return 0 }
	atLevels(t, func(t *testing.T) {
		if Current() == Generic {
			t.Skip("the caller converts")
		}
		src := append(slices.Repeat([]float32{0}, 6), special...)
		bits, back := make([]h, len(src)), make([]float32, len(src))
		ToHalf(bits, src, one)
		want := []h{
			0, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0xc100, 0x7bff, 0x7bff, 0x7c00, 0, 0x8001, 0x03ff, 0, 0x7c00, 0x7c00,
			0xfc00, 0xfc00, 0x7c00, 0x7c00, 0xfc00, 0x7e00, 0x3c04, 0x3c0c, 0x3c00, 0x3c02,
		}
		if !slices.Equal(bits[6:], want) {
			t.Errorf("halves of %v: %x, want %x", special, bits[6:], want)
		}
		FromHalf(back, bits)
		for i, x := range back[6:] {
			if math.Abs(float64(x-special[i])) > math.Abs(float64(special[i]))/1000+1e-8 && math.Abs(float64(special[i])) < 65504 {
				t.Errorf("%v came back as %v", special[i], x)
			}
		}
	})
}

func TestComparisons(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testComparisons[float32](t)
		testComparisons[float64](t)
	})
}

func testComparisons[T Float](t *testing.T) {
	preds := map[Predicate]func(a, b T) bool{
		Equal:        func(a, b T) bool { return a == b },
		NotEqual:     func(a, b T) bool { return a != b },
		Less:         func(a, b T) bool { return a < b },
		LessEqual:    func(a, b T) bool { return a <= b },
		Greater:      func(a, b T) bool { return a > b },
		GreaterEqual: func(a, b T) bool { return a >= b },
	}
	for _, n := range lengths {
		a, b := make([]T, n), make([]T, n)
		for i, x := range mixed(n) {
			a[i] = T(x)
			b[n-1-i] = T(x)
			if i%2 == 0 {
				b[n-1-i] = a[i/2]
			}
		}
		got := make([]bool, n+1)
		for p, want := range preds {
			Compare(p, got[:n], a, b)
			for i := range n {
				if got[i] != want(a[i], b[i]) {
					t.Fatalf("Compare(%d, %v, %v) of %T at %d of %d", p, a[i], b[i], a[i], i, n)
				}
			}
			for _, y := range special {
				CompareScalar(p, got[:n], a, T(y))
				for i := range n {
					if got[i] != want(a[i], T(y)) {
						t.Fatalf("CompareScalar(%d, %v, %v) of %T at %d of %d", p, a[i], y, a[i], i, n)
					}
				}
			}
		}
		if got[n] {
			t.Fatal("wrote past the end")
		}
	}
}

func TestBlend(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		testBlend[uint32](t)
		testBlend[uint64](t)
	})
}

func testBlend[E uint32 | uint64](t *testing.T) {
	for _, n := range lengths {
		a, b, dst, cond := make([]E, n), make([]E, n), make([]E, n+1), make([]bool, n)
		for i := range n {
			a[i], b[i], cond[i] = E(3*i+1), E(5*i+2)<<7, i*i%7 < 3
		}
		Blend(dst[:n], a, b, cond)
		for i := range n {
			want := b[i]
			if cond[i] {
				want = a[i]
			}
			if dst[i] != want {
				t.Fatalf("element %d of %d: %d, want %d", i, n, dst[i], want)
			}
		}
		if dst[n] != 0 {
			t.Fatal("wrote past the end")
		}
	}
}
