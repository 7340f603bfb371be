package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// expPoly is (e^r - 1 - r)/r^2 for |r| <= ln(2)/2, highest power first. The maximum error of e^r is
// 3.1e-9 for float32 and 3.5e-18 for float64.
func expPoly(t *target) []float64 {
	return by(t,
		[]float64{0.0013814539, 0.008368745, 0.04166839, 0.16666521, 0.49999994},
		[]float64{2.5118004513407956e-8, 2.7631406923303216e-7, 2.7557215849698324e-6, 2.4801489612178986e-5,
			0.00019841269917880652, 0.0013888888947308363, 0.0083333333333069841, 0.041666666666514413,
			0.16666666666666699, 0.50000000000000128})
}

// expMax and expMin bound the arguments whose exponential is a finite normal number. Results beyond
// them are infinity and 0.
func expMax(t *target) float64    { return by(t, 88.722839, 709.78271289338397) }
func expMin(t *target) float64    { return by(t, -87.336548, -708.39641853226408) }
func overflow(t *target) float64  { return by[float64](t, 89, 710) }
func underflow(t *target) float64 { return by[float64](t, -104, -746) }

func expConsts(t *target) []uint64 {
	c := t.floats(math.Log2E, ln2Hi(t), ln2Lo(t))
	c = append(c, t.floats(expPoly(t)...)...)
	c = append(c, t.floats(1, expMax(t), expMin(t))...)
	if t.isa == avx512 {
		return append(c, t.floats(overflow(t), underflow(t))...)
	}
	return append(c, t.floats(math.Inf(1))...)
}

// reduce computes x -= n*ln 2.
func (t *target) reduce(x, n vec) {
	t.fnma(x, n, t.kf(ln2Hi(t)))
	t.fnma(x, n, t.kf(ln2Lo(t)))
}

// expLess1 computes p = e^x - 1 as x + x^2*poly(x).
func (t *target) expLess1(p, x vec) {
	t.poly(p, x, expPoly(t))
	t.mul(p, p, x)
	t.horner(p, x, x)
}

// toExponent converts the whole number n to an integer and shifts it to the position of the
// exponent.
func (t *target) toExponent(n vec) {
	if t.bits == 32 {
		t.VCVTPS2DQ(n, n)
	} else {
		t.add(n, n, t.kf(t.rounder()))
	}
	t.left(n, n, t.mantissa())
}

// expBody computes x = e^x as 2^n * (1 + r + r^2*poly(r)), with n = round(x/ln 2) and r = x - n*ln
// 2.
func expBody(t *target, x vec, temp []vec) {
	n, p, src := temp[0], temp[1], temp[2]
	if t.isa == avx512 {
		t.min(x, t.krf(overflow(t), nil), x)
		t.max(x, t.krf(underflow(t), nil), x)
	} else {
		t.mov(src, x)
	}
	t.mul(n, x, t.kf(math.Log2E))
	t.round(nearest, n, n)
	t.reduce(x, n)
	t.expLess1(p, x)
	t.add(p, p, t.kf(1))
	if t.isa == avx512 {
		t.pick(t.VSCALEFPS, t.VSCALEFPD, n, p, x)
		return
	}
	// Add n to the exponent. Results that would overflow are replaced.
	t.toExponent(n)
	t.plus(x, p, n)
	t.choose(x, greater, src, t.kf(expMax(t)), t.krf(math.Inf(1), p), n)
	t.zero(p)
	t.choose(x, less, src, t.kf(expMin(t)), p, n)
	if t.bits == 64 { // n has the bits of NaN; as a 32-bit integer it has none
		t.choose(x, unordered, src, src, src, n)
	}
}

// sigmoidBody computes x = 1/(1 + e^-x).
func sigmoidBody(t *target, x vec, temp []vec) {
	t.xor(x, x, t.k(signBit(t)))
	expBody(t, x, temp)
	t.add(x, x, t.kf(1))
	t.div(x, t.krf(1, temp[0]), x)
}

// tanhOne is an argument whose tanh is 1.
func tanhOne(t *target) float64 { return by[float64](t, 10, 22) }

func tanhConsts(t *target) []uint64 {
	c := by(t, t.floats(math.Ln2), t.floats(ln2Hi(t), ln2Lo(t)))
	c = append(append(c, t.floats(2*math.Log2E)...), t.floats(expPoly(t)...)...)
	return append(c, append(t.floats(1, 2, tanhOne(t), t.rounder()), signBit(t), signBit(t)-1)...)
}

// tanhBody computes x = tanh x as m/(m+2), with m = e^(2|x|) - 1 = 2^n*(e^r - 1) + 2^n - 1. This
// keeps small arguments exact.
func tanhBody(t *target, x vec, temp []vec) {
	n, p, y, scale := temp[0], temp[1], temp[2], temp[3]
	t.and(y, x, t.k(signBit(t)-1))
	t.min(y, t.krf(tanhOne(t), n), y)
	if t.isa == avx512 && t.bits == 32 {
		t.mul(n, y, t.kf(2*math.Log2E))
		t.round(nearest, n, n)
		t.VSCALEFPS(n, t.krf(1, p), scale) // 2^n
	} else {
		t.mov(n, t.kf(t.rounder()))
		t.fma(n, y, t.kf(2*math.Log2E))
		t.left(scale, n, t.mantissa())
		t.plus(scale, scale, t.kf(1))
		t.sub(n, n, t.kf(t.rounder()))
	}
	t.add(y, y, y)
	if t.bits == 32 {
		// The error of n*ln 2 is 2e-9*n, and tanh reduces it as n grows: it is less than 0.05 ULP.
		t.fnma(y, n, t.kf(math.Ln2))
	} else {
		t.reduce(y, n)
	}
	t.expLess1(p, y)
	t.sub(y, scale, t.kf(1))
	t.horner(p, scale, y) // m
	t.add(y, p, t.kf(2))
	t.div(p, p, y)
	if t.isa == avx512 {
		const aAndBOrC = 0xea // copies the sign of x to p, which is positive
		t.VPTERNLOGD(operand.U8(aAndBOrC), p, t.kr(signBit(t), n), x)
		return
	}
	t.and(x, x, t.k(signBit(t)))
	t.or(x, x, p)
}

// lessOne is an argument whose exponential minus 1 is -1.
func lessOne(t *target) float64 { return by[float64](t, -18, -38) }

func expm1Consts(t *target) []uint64 {
	c := t.floats(math.Log2E, ln2Hi(t), ln2Lo(t))
	c = append(c, t.floats(expPoly(t)...)...)
	c = append(c, t.floats(overflow(t), lessOne(t), 0.5)...)
	return append(c, by(t, nil, t.floats(t.rounder()))...)
}

// expm1Body computes x = e^x - 1 as 2^n*(e^r - 1) + 2^n - 1, using half the power of two, which is
// always finite.
func expm1Body(t *target, x vec, temp []vec) {
	n, p, scale := temp[0], temp[1], temp[2]
	t.min(x, t.krf(overflow(t), p), x)
	t.max(x, t.krf(lessOne(t), p), x)
	t.mul(n, x, t.kf(math.Log2E))
	t.round(nearest, n, n)
	t.reduce(x, n)
	t.expLess1(p, x)
	t.toExponent(n)
	t.plus(scale, n, t.kf(0.5)) // 2^(n-1)
	t.sub(x, scale, t.kf(0.5))
	t.fma(x, p, scale)
	t.add(x, x, x)
	t.choose(x, equal, scale, t.kf(0.5), p, n) // half of p could be denormal
}
