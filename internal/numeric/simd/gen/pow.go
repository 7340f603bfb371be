package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// log2Poly is log2(1+f)/f for sqrt(1/2)-1 <= f <= sqrt(2)-1. exp2Poly is (2^r - 1)/r for |r| <=
// 1/2. Highest power first. The maximum relative error of the logarithm is 1.6e-11, and the maximum
// error of the power is 4.7e-11.
var (
	log2Poly = []float64{0.077370511633510164, -0.1428394772290358, 0.14474846781197583, -0.14315643764230997,
		0.15876979572462743, -0.18030060175306332, 0.20617535963680799, -0.24045316566651288, 0.28853729348718026,
		-0.36067367482437369, 0.48089836139484354, -0.72134752087868967, 1.4426950408687081}
	exp2Poly = []float64{1.5196057905209967e-5, 0.00015466881122855586, 0.0013333936471787988, 0.0096180377741334478,
		0.055504103631615395, 0.24022651068736329, 0.6931471807055966}
)

// power emits a^b as 2^(b*log2|a|). It computes in float64, whose rounding errors are invisible in
// float32.
func (t *target) power() {
	t.stream(stream{
		name: "pow", doc: "dst = a^b", in: []string{"a", "b"}, out: []string{"dst"}, temps: 8, unroll: 1,
		consts: append(append(t.floats(1, 0, math.Inf(1), math.Inf(-1), 0.5), sqrtHalf(t), nan(t)), signBit(t), signBit(t)-1),
		body: func(t *target, x vars) {
			t.magnitude(x.v["dst"], x.v["a"], x.v["b"], x.temp)
			t.powerSign(x.v["dst"], x.v["a"], x.v["b"], x.temp)
		},
	})
}

// magnitude computes dst = |a|^b.
func (t *target) magnitude(dst, a, b vec, temp []vec) {
	const notLess = 0x15
	abs, e, f, tmp := temp[0], temp[1], temp[2], temp[3]
	t.and(abs, a, t.k(signBit(t)-1))
	t.split32(e, f, abs)
	// The logarithms of zero and of non-finite numbers do not depend on f.
	t.choose(e, equal, abs, t.kf(0), t.krf(math.Inf(-1), tmp), temp[4])
	t.choose(e, notLess, abs, t.kf(math.Inf(1)), abs, tmp)
	for upper := range 2 {
		t.halfPower(dst, e, f, b, temp[3:], upper == 1)
	}
	one := t.krf(1, tmp)
	t.choose(dst, equal, abs, one, one, e)
	t.choose(dst, equal, b, t.kf(0), one, e)
}

// halfPower computes 2^(b*(e + log2(1+f))) for half of the elements.
func (t *target) halfPower(dst, e, f, b vec, temp []vec, upper bool) {
	d := t.double()
	x, p, n, wide := temp[0], temp[1], temp[2], temp[3]
	t.widen(x, f, upper)
	t.widen(wide, e, upper)
	d.poly(p, x, log2Poly)
	d.horner(p, x, wide)
	t.widen(wide, b, upper)
	d.mul(x, p, wide)
	// Beyond these bounds the float32 result is zero or infinite.
	d.min(x, d.krf(160, n), x)
	d.max(x, d.krf(-160, n), x)
	d.round(nearest, n, x)
	d.sub(x, x, n)
	d.poly(p, x, exp2Poly)
	d.horner(p, x, d.krf(1, wide))
	if t.isa == avx512 {
		t.VSCALEFPD(n, p, p)
	} else {
		d.toExponent(n)
		d.plus(p, p, n)
	}
	t.narrow(dst, p, upper)
}

// widen converts the lower or the upper half of a vector of float32 to float64. narrow does the
// opposite.
func (t *target) widen(dst, src vec, upper bool) {
	half := t.half(src)
	if upper {
		half = t.half(dst)
		if t.isa == avx512 {
			t.VEXTRACTF64X4(operand.U8(1), src, half)
		} else {
			t.VEXTRACTF128(operand.U8(1), src, half)
		}
	}
	t.VCVTPS2PD(half, dst)
}

func (t *target) narrow(dst, src vec, upper bool) {
	half := t.half(dst)
	if upper {
		half = t.half(src)
	}
	if t.isa == avx512 {
		t.VCVTPD2PS(src, half)
	} else {
		t.VCVTPD2PSY(src, half)
	}
	if !upper {
		return
	}
	if t.isa == avx512 {
		t.VINSERTF64X4(operand.U8(1), half, dst, dst)
	} else {
		t.VINSERTF128(operand.U8(1), half, dst, dst)
	}
}

// powerSign turns |a|^b into a^b where the sign bit of a is set. The result is negative for odd b.
// It is NaN unless a is zero or infinite, or b is an integer.
func (t *target) powerSign(dst, a, b vec, temp []vec) {
	whole, half, sign, tmp, tmp2 := temp[1], temp[2], temp[3], temp[4], temp[5]
	t.round(nearest, whole, b)
	t.mov(sign, dst)
	t.choose(sign, less, a, t.kf(0), t.kr(nan(t), tmp), tmp2)
	t.choose(sign, equal, a, t.kf(math.Inf(-1)), dst, tmp2)
	t.choose(sign, equal, whole, b, dst, tmp2)
	t.mov(dst, sign)
	// b is odd if it is an integer and b/2 is not.
	t.mul(half, b, t.kf(0.5))
	t.round(nearest, tmp, half)
	t.and(sign, a, t.k(signBit(t)))
	t.choose(sign, equal, tmp, half, t.krf(0, temp[6]), tmp2)
	t.choose(sign, notEqual, whole, b, t.krf(0, temp[6]), tmp2)
	t.xor(dst, dst, sign)
}
