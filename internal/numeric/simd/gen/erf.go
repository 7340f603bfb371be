package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// erf x = x*P(x^2)/Q(x^2) up to erfMax, and 1 beyond; highest power first, maximum error 2.0e-8.
var (
	erfP = []float64{2.041955617138856e-06, 0.00028480875706963723, 0.0037796460181681694, 0.052790403287467626,
		0.19078477712586844, 1.1283791453451208}
	erfQ = []float64{3.800392392955768e-05, 0.001165220251101268, 0.01499751382707945, 0.11425790566126884,
		0.5024113260828783, 1}
)

const erfMax = 3.93

func erfConsts(t *target) []uint64 {
	c := append([]uint64{signBit(t) - 1, signBit(t)}, t.floats(erfMax)...)
	return append(append(c, t.floats(erfP...)...), t.floats(erfQ...)...)
}

func erfBody(t *target, x vec, temp []vec) {
	a, u, p, q := temp[0], temp[1], temp[2], temp[3]
	t.and(a, x, t.k(signBit(t)-1))
	t.min(a, t.krf(erfMax, u), a)
	t.mul(u, a, a)
	t.poly(p, u, erfP)
	t.poly(q, u, erfQ)
	t.mul(p, p, a)
	t.div(p, p, q)
	t.min(p, t.krf(1, q), p)
	t.and(x, x, t.k(signBit(t)))
	t.or(x, x, p)
}

// erfSmall is erf x / x - 1 for |x| <= 1 as a polynomial of x^2, with a maximum error of 7e-18.
// erfTail is e^(x^2)*(1 - erf x) for x from 1 to 6 as a polynomial of u = 14.4/(x+3) - 2.6, which
// runs from 1 to -1. The maximum error of erf x is 2.2e-18. Highest power first.
var (
	erfSmall = []float64{
		5.958930743134941e-11, -1.1373902296430911e-09, 1.4660051998394848e-08, -1.6350354461959655e-07, 1.6461004480962034e-06,
		-1.4925595519506043e-05, 0.00012055331122299266, -0.0008548326981129666, 0.005223977624823223, -0.026866170645077334,
		0.11283791670954882, -0.3761263890318375, 0.12837916709551257,
	}
	erfTail = []float64{
		6.044068318449643e-12, -6.046858018203033e-12, -2.5700504246482923e-10, 2.638133067637362e-10, 1.1339337061280557e-08,
		4.526702996597009e-09, -5.54127310709044e-07, -2.4255574732470057e-06, 1.9563583198099526e-05, 0.00033160296057680485,
		0.0024793146970862002, 0.012713147695692147, 0.04969844540339414, 0.15436117429436919, 0.20798329133342885,
	}
)

// erfOne is an argument whose error function is 1.
const erfOne = 6

func erf64Consts(t *target) []uint64 {
	return append(expConsts(t), signBit(t)-1, signBit(t))
}

// erf64Body returns a body that computes the tail only if an argument in the vector exceeds 1.
func erf64Body() func(t *target, x vec, temp []vec) {
	bodies := 0
	return func(t *target, x vec, temp []vec) {
		a, p, e, q, u := temp[3], temp[4], temp[5], temp[6], temp[7]
		t.and(a, x, t.k(signBit(t)-1))
		t.min(a, t.krf(erfOne, u), a)
		t.mul(e, a, a)
		t.poly(p, e, erfSmall)
		t.horner(p, a, a)

		bodies++
		near := fmt.Sprintf("near%d", bodies)
		t.mov(u, t.kf(1))
		if t.isa == avx512 {
			t.VCMPPD(operand.U8(less), a, u, reg.K2)
			t.KORTESTW(reg.K2, reg.K2)
		} else {
			t.VCMPPD(operand.U8(less), a, u, q)
			t.VMOVMSKPD(q, reg.EAX)
			t.TESTL(reg.EAX, reg.EAX)
		}
		t.JEQ(operand.LabelRef(near))
		t.xor(e, e, t.k(signBit(t)))
		expBody(t, e, temp)
		t.add(q, a, t.kf(3))
		t.mov(u, t.kf(14.4))
		t.div(u, u, q)
		t.sub(u, u, t.kf(2.6))
		t.poly(q, u, erfTail)
		t.mov(u, t.kf(1))
		t.mul(q, q, e)
		t.sub(q, u, q)
		t.choose(p, less, u, a, q, e)
		t.Label(near)
		t.and(x, x, t.k(signBit(t)))
		t.or(x, x, p)
	}
}
