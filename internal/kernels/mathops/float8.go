package mathops

import (
	"math"
	"sort"
)

// float8 describes an 8-bit floating-point type.
type float8 struct {
	values [256]float32 // value of each bit pattern
	finite int          // number of finite patterns from 0 on, which are in ascending order
	over   uint8        // pattern for values that are too large
}

// The types. Float8E5M2 has infinities. Float8E4M3 has no infinities and one NaN of either sign.
var (
	e5m2 = newFloat8(2, 15, 0x7c, 0x7c)
	e4m3 = newFloat8(3, 7, 0x7f, 0x7f)
)

func newFloat8(mantissa, bias, finite int, over uint8) *float8 {
	f := &float8{finite: finite, over: over}
	for bits := range 128 {
		exponent, fraction := bits>>mantissa, bits&(1<<mantissa-1)
		v := math.Ldexp(float64(fraction), 1-bias-mantissa)
		if exponent > 0 {
			v = math.Ldexp(float64(fraction+1<<mantissa), exponent-bias-mantissa)
		}
		switch {
		case bits == finite && over == 0x7c:
			v = math.Inf(1)
		case bits >= finite:
			v = math.NaN()
		}
		f.values[bits], f.values[bits+128] = float32(v), float32(-v)
	}
	return f
}

// of returns the pattern of the closest value, and the even pattern of two equally close.
func (f *float8) of(v float64) uint8 {
	sign := uint8(0)
	if math.Signbit(v) {
		sign, v = 0x80, -v
	}
	if math.IsNaN(v) {
		return sign | f.nan()
	}
	at := sort.Search(f.finite, func(i int) bool { return float64(f.values[i]) >= v })
	if at == 0 {
		return sign
	}
	// The value that would follow the largest one.
	above := 2*float64(f.values[f.finite-1]) - float64(f.values[f.finite-2])
	if at < f.finite {
		above = float64(f.values[at])
	}
	below := float64(f.values[at-1])
	if up := v - below; up > above-v || up == above-v && at%2 == 0 {
		if at == f.finite {
			return sign | f.over
		}
		return sign | uint8(at)
	}
	return sign | uint8(at-1)
}

func (f *float8) nan() uint8 {
	if f.over == 0x7c {
		return 0x7e
	}
	return 0x7f
}
