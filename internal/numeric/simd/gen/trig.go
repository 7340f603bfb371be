package main

import (
	"math"

	"github.com/mmcloughlin/avo/reg"
)

// halfPi is pi/2 in parts. For permitted arguments, a multiple of the first part by the number of
// quarter turns differs from the argument by a number that the type represents exactly.
func halfPi(t *target) []float64 {
	return by(t,
		[]float64{1.57079637050628662109375, -4.37113900018624283e-8, -1.71512451000000e-15},
		[]float64{1.5707963267341256142, 6.0771005063039659766e-11, 2.0222662487959507324e-21})
}

// sinPoly is (sin r - r)/r^3 and cosPoly is (cos r - 1 + r^2/2)/r^4, as polynomials of r^2 for |r|
// <= pi/4, highest power first. The maximum relative error of sin r is 3.8e-9 for float32 and
// 3.4e-18 for float64, and the maximum error of cos r is 1.2e-10 and 4.7e-20.
func sinPoly(t *target) []float64 {
	return by(t,
		[]float64{-0.00019514629711527367, 0.008332156033616344, -0.16666654536194708},
		[]float64{1.5896795864949157e-10, -2.5050758118971796e-8, 2.7557313691942969e-6, -0.00019841269829807891,
			0.0083333333333224138, -0.16666666666666632})
}

func cosPoly(t *target) []float64 {
	return by(t,
		[]float64{2.4432412291755114e-05, -0.0013887309859625583, 0.04166664555429773},
		[]float64{-1.1359648763924317e-11, 2.0875723293773174e-9, -2.7557314352502317e-7, 2.4801587289482854e-5,
			-0.0013888888888874125, 0.041666666666666599})
}

func trigConsts(t *target) []uint64 {
	c := append(t.floats(2/math.Pi), t.floats(halfPi(t)...)...)
	c = append(append(c, t.floats(0.5, 1)...), t.floats(sinPoly(t)...)...)
	c = append(append(c, t.floats(cosPoly(t)...)...), by(t, signBit(t), t.float(t.rounder())))
	return append(c, 1)
}

func sinBody(t *target, x vec, temp []vec) { t.trig(x, temp, false) }
func cosBody(t *target, x vec, temp []vec) { t.trig(x, temp, true) }

// trig computes x = sin x, or sin(x + pi/2), with n = round(x/(pi/2)) and r = x - n*pi/2. n selects
// the sine or the cosine of r, and the sign.
func (t *target) trig(x vec, temp []vec, cosine bool) {
	n, u, s, c := temp[0], temp[1], temp[2], temp[3]
	t.mul(n, x, t.kf(2/math.Pi))
	t.round(nearest, n, n)
	for _, part := range halfPi(t) {
		t.fnma(x, n, t.kf(part))
	}
	if t.bits == 32 {
		t.VCVTPS2DQ(n, n)
	} else {
		t.add(n, n, t.kf(t.rounder()))
	}
	if cosine {
		t.plus(n, n, t.k(1))
	}
	t.mul(u, x, x)
	t.poly(s, u, sinPoly(t))
	t.mul(s, s, u)
	t.horner(s, x, x)
	t.poly(c, u, cosPoly(t))
	t.mul(c, c, u)
	t.sub(c, c, t.kf(0.5))
	t.horner(c, u, t.kf(1))
	t.left(x, n, t.bits-1) // the sign of x selects one of the two
	t.blendBySign(s, c, x)
	t.right(n, n, 1)
	t.left(n, n, t.bits-1)
	t.xor(x, s, n)
}

// blendBySign sets dst to src where sign is negative.
func (t *target) blendBySign(dst, src, sign vec) {
	switch {
	case t.isa == avx512 && t.bits == 32:
		t.VPMOVD2M(sign, reg.K2)
		t.VMOVAPS(src, reg.K2, dst)
	case t.isa == avx512:
		t.VPMOVQ2M(sign, reg.K2)
		t.VMOVAPD(src, reg.K2, dst)
	case t.bits == 32:
		t.VBLENDVPS(sign, src, dst, dst)
	default:
		t.VBLENDVPD(sign, src, dst, dst)
	}
}
