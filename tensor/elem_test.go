package tensor

import (
	"math"
	"testing"
)

// halfValue computes the value of a Float16Elem from its definition.
func halfValue(h Float16Elem) float64 {
	sign, exp, frac := 1.0, int(h>>10)&0x1f, float64(h&0x3ff)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch exp {
	case 0x1f:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// TestFloat16Widens checks the conversion of all values to float32.
func TestFloat16Widens(t *testing.T) {
	for i := range 1 << 16 {
		h := Float16Elem(i)
		got, want := float64(h.Float32()), halfValue(h)
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != (h&0x8000 != 0) {
			t.Fatalf("%#04x is %v, want %v", i, got, want)
		}
		if back := Float16Of(h.Float32()); back != h && !math.IsNaN(want) {
			t.Fatalf("%#04x is converted back to %#04x", i, back)
		}
	}
}

// TestFloat16Rounds checks that numbers between two adjacent values are rounded to the nearest one,
// and ties to even.
func TestFloat16Rounds(t *testing.T) {
	for i := range 0x7c00 {
		lo, hi := Float16Elem(i), Float16Elem(i+1)
		below := float64(lo.Float32())
		above := halfValue(hi)
		if hi == 0x7c00 {
			above = 65536 // the next value of an unbounded exponent range
		}
		middle := float32((below + above) / 2)
		even := lo
		if i%2 == 1 {
			even = hi
		}
		for _, test := range []struct {
			f    float32
			want Float16Elem
		}{{math.Nextafter32(middle, 0), lo}, {middle, even}, {math.Nextafter32(middle, math.MaxFloat32), hi}} {
			if got := Float16Of(test.f); got != test.want {
				t.Fatalf("%v is rounded to %#04x, want %#04x", test.f, got, test.want)
			}
			if got := Float16Of(-test.f); got != test.want|0x8000 {
				t.Fatalf("%v is rounded to %#04x, want %#04x", -test.f, got, test.want|0x8000)
			}
		}
	}
	if h := Float16Of(float32(math.NaN())); !math.IsNaN(float64(h.Float32())) {
		t.Errorf("NaN is converted to %#04x", h)
	}
	if h := Float16Of(float32(math.Inf(-1))); h != 0xfc00 {
		t.Errorf("-inf is converted to %#04x", h)
	}
	if h := Float16Of(math.MaxFloat32); h != 0x7c00 {
		t.Errorf("the largest float is rounded to %#04x", h)
	}
}

func TestBFloat(t *testing.T) {
	for i := range 1 << 16 {
		b := BFloat16Elem(i)
		f := b.Float32()
		if math.Float32bits(f) != uint32(i)<<16 {
			t.Fatalf("%#04x is widened to %x", i, math.Float32bits(f))
		}
		if f != f {
			if back := BFloat16Of(f).Float32(); back == back {
				t.Fatalf("NaN %#04x is converted back to %v", i, back)
			}
			continue
		}
		if back := BFloat16Of(f); back != b {
			t.Fatalf("%#04x is converted back to %#04x", i, back)
		}
		if b&0x7fff >= 0x7f80 {
			continue
		}
		// Numbers between b and the adjacent value further from zero differ from b in the lower
		// half of the bits.
		for low, want := range map[uint32]BFloat16Elem{0x7fff: b, 0x8000: b + b&1, 0x8001: b + 1, 1: b} {
			if got := BFloat16Of(math.Float32frombits(uint32(i)<<16 | low)); got != want {
				t.Fatalf("%#04x with low bits %#04x is rounded to %#04x, want %#04x", i, low, got, want)
			}
		}
	}
}

func TestDTypes(t *testing.T) {
	for d := range DType(40) {
		if !d.Valid() {
			continue
		}
		for _, name := range []string{d.String(), d.Name(), d.Enum(), d.Ref().String(), d.Ref().Name(), d.Ref().Enum()} {
			if got, ok := ParseDType(name); !ok || got.Base() != d || got.IsRef() != (name != d.String() && name != d.Name() && name != d.Enum()) {
				t.Errorf("%s is parsed as %v, %v", name, got, ok)
			}
		}
		if d.Ref().Base() != d || d.Ref().Ref() != d.Ref() || d.Ref().Valid() {
			t.Errorf("%v and its reference type are inconsistent", d)
		}
	}
	for d, want := range map[DType][3]string{
		Float32: {"float", "float32", "DT_FLOAT"}, Float64: {"double", "float64", "DT_DOUBLE"}, Float16: {"half", "float16", "DT_HALF"},
		Int32: {"int32", "int32", "DT_INT32"}, BFloat16: {"bfloat16", "bfloat16", "DT_BFLOAT16"}, QUint8: {"quint8", "quint8", "DT_QUINT8"},
		Int64.Ref(): {"int64_ref", "int64_ref", "DT_INT64_REF"}, Float32.Ref(): {"float_ref", "float32_ref", "DT_FLOAT_REF"},
		Float8E4M3: {"float8_e4m3fn", "float8_e4m3fn", "DT_FLOAT8_E4M3FN"}, 77: {"unknown dtype enum (77)", "unknown dtype enum (77)", "DT_UNKNOWN DTYPE ENUM (77)"},
	} {
		if got := [3]string{d.String(), d.Name(), d.Enum()}; got != want {
			t.Errorf("%d is named %q, want %q", d, got, want)
		}
	}
	for _, name := range []string{"", "foo", "_ref", "DT_", "float32_ref_ref"} {
		if d, ok := ParseDType(name); ok {
			t.Errorf("%q is parsed as %v", name, d)
		}
	}
}
