package cparse

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFloat compares with the results of TensorFlow 2.21's StringToNumber.
func TestFloat(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"1", 1, true}, {" +1\t", 1, true}, {"1.", 1, true}, {".5", 0.5, true}, {"-0", math.Copysign(0, -1), true},
		{"0x10", 16, true}, {"0x1p3", 8, true}, {"1e400", math.Inf(1), true}, {"-1e400", math.Inf(-1), true}, {"1e-400", 0, true},
		{"-Infinity", math.Inf(-1), true}, {"INF", math.Inf(1), true}, {"nan", math.NaN(), true}, {"+nan", math.NaN(), true},
		{"nan(1)", math.NaN(), true},
		{"", 0, false}, {".", 0, false}, {"-", 0, false}, {"1.2.3", 0, false}, {"1_0", 0, false}, {"1.5f", 0, false}, {"+-1", 0, false}, {"infi", 0, false}, {"1e", 0, false}, {"1\x00", 0, false},
	} {
		got, ok := Float(tt.text, 64)
		if ok != tt.ok || ok && math.Float64bits(got) != math.Float64bits(tt.want) && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%q: %v, %v, want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
	if got, ok := Float("1e39", 32); !ok || !math.IsInf(got, 1) {
		t.Errorf("1e39 in 32 bits: %v, %v", got, ok)
	}
}

func TestIntegers(t *testing.T) {
	for text, want := range map[string]int64{" +1 ": 1, "-9999999999": -9999999999, "-0": 0} {
		if got, ok := Int(text, 64); !ok || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "0x10", "1_0", "--1", "1.", "9999999999"} {
		if got, ok := Int(text, 32); ok {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
	if got, ok := Uint("+4294967295", 32); !ok || got != math.MaxUint32 {
		t.Errorf("4294967295: %v, %v", got, ok)
	}
	for _, text := range []string{"-1", "-0", "4294967296", "++1"} {
		if got, ok := Uint(text, 32); ok {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
}

// TestShort compares the fast path with strconv.
func TestShort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10)
		if at := rng.IntN(len(text) + 1); rng.IntN(4) > 0 {
			text = text[:at] + "." + text[at:]
		}
		if rng.IntN(2) == 0 {
			text = "-" + text
		}
		for _, bits := range []int{32, 64} {
			want, err := strconv.ParseFloat(text, bits)
			if got, ok := Float(text, bits); err != nil || !ok || math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%q in %d bits: %v, %v, want %v, %v", text, bits, got, ok, want, err)
			}
		}
	}
}
