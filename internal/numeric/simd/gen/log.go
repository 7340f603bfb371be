package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// logPoly is (ln(1+f) - f + f^2/2)/f^3 for sqrt(1/2)-1 <= f <= sqrt(2)-1, highest power first. The
// maximum error of ln(1+f) is 5.9e-9.
var logPoly = []float64{-0.0763446, 0.12761563, -0.1316019, 0.1420176, -0.16623357, 0.20001227, -0.2500082, 0.3333333}

// atanhPoly is (2*atanh(s) - 2*s)/s^3 as a polynomial of s^2 for |s| <= 3-sqrt(8), highest power
// first. The maximum relative error of 2*atanh(s) is 1.3e-18.
var atanhPoly = []float64{0.14797431032744847, 0.15313911470867771, 0.18183569390461136, 0.22222198483421706,
	0.28571428743180394, 0.39999999999411531, 0.66666666666667348}

// sqrtHalf returns the bits of the square root of 1/2.
func sqrtHalf(t *target) uint64 { return by[uint64](t, 0x3f3504f3, 0x3fe6a09e667f3bcd) }

// Constants that split off the exponent of a float64: the addend that makes the exponent of numbers
// between sqrt(1/2) and sqrt(2) that of 1, the bits of the exponent, and 2^52, whose low bits hold
// an integer.
const (
	toOne        = 0x3ff0000000000000 - 0x3fe6a09e667f3bcd
	exponentBits = 0xfff0000000000000
	integer52    = 1 << 52
)

func logConsts(t *target) []uint64 {
	c := append(t.floats(1, ln2Hi(t), ln2Lo(t), 0.5), by(t, t.floats(logPoly...), t.floats(atanhPoly...))...)
	c = append(c, append(t.floats(0, math.Inf(1), math.Inf(-1)), nan(t))...)
	if t.bits == 32 {
		return append([]uint64{sqrtHalf(t)}, c...)
	}
	return append(c, append(t.floats(2, integer52, integer52+1023), toOne, exponentBits)...)
}

// logBody computes x = ln x as e*ln 2 + ln(1+f), with x = 2^e*(1+f).
func logBody(t *target, x vec, temp []vec) {
	f, p, tmp := temp[1], temp[2], temp[3]
	if t.bits == 32 {
		t.log32(x, temp)
	} else {
		t.log64(x, temp)
	}
	const notLess = 0x15
	t.choose(f, less, x, t.kf(0), t.kr(nan(t), p), tmp)
	t.choose(f, equal, x, t.kf(0), t.krf(math.Inf(-1), p), tmp)
	t.choose(f, notLess, x, t.kf(math.Inf(1)), x, tmp)
	t.mov(x, f)
}

// split32 computes e and f of a float32.
func (t *target) split32(e, f, x vec) {
	t.minus(e, x, t.kr(sqrtHalf(t), e))
	t.VPSRAD(operand.U8(23), e, e)
	t.left(f, e, 23)
	t.minus(f, x, f)
	t.sub(f, f, t.kf(1))
	t.VCVTDQ2PS(e, e)
}

// log32 computes the logarithms of nonzero numbers in temp[1].
func (t *target) log32(x vec, temp []vec) {
	e, f, p, sq := temp[0], temp[1], temp[2], temp[3]
	t.split32(e, f, x)
	t.poly(p, f, logPoly)
	t.mul(sq, f, f)
	t.mul(p, p, f)
	t.mul(p, p, sq)
	t.fma(p, e, t.kf(ln2Lo(t)))
	t.fnma(p, sq, t.kf(0.5))
	t.add(f, f, p)
	t.fma(f, e, t.kf(ln2Hi(t)))
}

// log64 is log32 for float64, with ln(1+f) = 2*atanh(s) and s = f/(2+f). Since 2s = f - s*f, it
// computes f - (f^2/2 - s*(f^2/2 + s^2*poly(s^2))), which avoids rounding most of f.
func (t *target) log64(x vec, temp []vec) {
	e, f, p, z, s, half := temp[0], temp[1], temp[2], temp[3], temp[6], temp[7]
	t.plus(e, x, t.kr(toOne, e))
	t.and(f, e, t.k(exponentBits))
	t.minus(f, x, f)
	t.plus(f, f, t.kf(1))
	t.right(e, e, 52)
	t.or(e, e, t.kf(integer52))
	t.sub(e, e, t.kf(integer52+1023))
	t.sub(f, f, t.kf(1))
	t.add(s, f, t.kf(2))
	t.div(s, f, s)
	t.mul(z, s, s)
	t.poly(p, z, atanhPoly)
	t.mul(half, f, t.kf(0.5))
	t.mul(half, half, f)
	t.horner(p, z, half)
	t.mul(p, p, s)
	t.fma(p, e, t.kf(ln2Lo(t)))
	t.sub(p, half, p)
	t.sub(f, f, p)
	t.fma(f, e, t.kf(ln2Hi(t)))
}

// log1pBody computes x = ln(1+x) as ln(u) * x/(u-1), with u = 1+x rounded. The factor compensates
// for the rounding.
func log1pBody(t *target, x vec, temp []vec) {
	u, d := temp[4], temp[5]
	t.add(u, x, t.kf(1))
	t.sub(d, u, t.kf(1))
	t.div(d, x, d)
	logBody(t, u, temp)
	// Where u is 1, the quotient is 0/0 or infinite instead of 1. Where x is infinite, it is NaN,
	// and ln(u) is NaN for x below -1. In these two cases the logarithm alone is right.
	t.mul(d, d, u)
	t.choose(d, equal, u, t.kf(0), x, temp[0])
	t.choose(d, equal, x, t.kf(math.Inf(1)), x, temp[0])
	t.mov(x, d)
}
