package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transcendental emits exp, log, tanh, sigmoid and softmax for float32. The
// polynomials are minimax fits (relative error, Lawson iteration in extended precision).
func transcendental(t *target) {
	for _, u := range []struct {
		name, doc string
		consts    []uint64
		body      func(t *target, x vec, temp []vec)
	}{
		{"exp", "dst = e^src", expConsts(t), expBody},
		{"log", "dst = ln(src)", logConsts(t), logBody},
		{"tanh", "dst = tanh(src)", tanhConsts(t), tanhBody},
		{"sigmoid", "dst = 1/(1 + e^-src)", append(expConsts(t), signBit(t)), sigmoidBody},
	} {
		t.stream(stream{
			name: u.name, doc: u.doc, in: []string{"src"}, out: []string{"dst"}, consts: u.consts, temps: 4, unroll: 2,
			body: func(t *target, x vars) {
				t.mov(x.v["dst"], x.v["src"])
				u.body(t, x.v["dst"], x.temp)
			},
		})
	}
	t.expSum("expSubSum", "dst = e^(src-sub); returns the sum of dst", true)
	t.expSum("sumExpSub", "returns the sum of e^(src-sub)", false)
	t.softmax(true)
	t.softmax(false)
}

const (
	ln2Hi = 0.693359375 // few bits, so that multiples of it are exact
	ln2Lo = -2.12194440e-4
)

// expPoly is (e^r - 1 - r)/r^2 for |r| <= ln(2)/2, highest power first; maximal error of e^r 3.1e-9.
var expPoly = []float64{0.0013814539, 0.008368745, 0.04166839, 0.16666521, 0.49999994}

// logPoly is (ln(1+f) - f + f^2/2)/f^3 for sqrt(1/2)-1 <= f <= sqrt(2)-1, highest power first; maximal error of
// ln(1+f) 5.9e-9.
var logPoly = []float64{-0.0763446, 0.12761563, -0.1316019, 0.1420176, -0.16623357, 0.20001227, -0.2500082, 0.3333333}

// expMax and expMin bound the arguments whose exponential is finite and not denormal.
const (
	expMax = 88.722839
	expMin = -87.336548
)

func expConsts(t *target) []uint64 {
	c := t.floats(math.Log2E, ln2Hi, ln2Lo)
	c = append(c, t.floats(expPoly...)...)
	c = append(c, t.floats(1, expMax, expMin)...)
	if t.isa == avx512 {
		return append(c, t.floats(89, -104)...)
	}
	return append(c, t.floats(math.Inf(1))...)
}

func (t *target) floats(values ...float64) []uint64 {
	var c []uint64
	for _, v := range values {
		c = append(c, t.float(v))
	}
	return c
}

// poly sets dst to the polynomial of x with the given coefficients, highest power first.
func (t *target) poly(dst, x vec, coef []float64) {
	t.mov(dst, t.kf(coef[0]))
	for _, c := range coef[1:] {
		t.horner(dst, x, t.kf(c))
	}
}

// expBody: x = e^x, with n = round(x/ln 2) and r = x - n*ln 2 as 2^n * (1 + r + r^2*poly(r)).
func expBody(t *target, x vec, temp []vec) {
	n, p, src := temp[0], temp[1], temp[2]
	if t.isa == avx512 {
		t.min(x, t.krf(89, nil), x)
		t.max(x, t.krf(-104, nil), x)
		t.mul(n, x, t.kf(math.Log2E))
		t.VRNDSCALEPS(operand.U8(8), n, n)
	} else {
		t.mov(src, x)
		t.mul(n, x, t.kf(math.Log2E))
		t.VROUNDPS(operand.U8(8), n, n)
	}
	t.fnma(x, n, t.kf(ln2Hi))
	t.fnma(x, n, t.kf(ln2Lo))
	t.poly(p, x, expPoly)
	t.mul(p, p, x)
	t.horner(p, x, x)
	t.add(p, p, t.kf(1))
	if t.isa == avx512 {
		t.VSCALEFPS(n, p, x)
		return
	}
	// The power of two goes into the exponent; what would not fit is replaced.
	t.VCVTPS2DQ(n, n)
	t.VPSLLD(operand.U8(23), n, n)
	t.VPADDD(n, p, x)
	t.choose(x, greater, src, t.kf(expMax), t.krf(math.Inf(1), p), n)
	t.zero(p)
	t.choose(x, less, src, t.kf(expMin), p, n)
}

// sigmoidBody: x = 1/(1 + e^-x).
func sigmoidBody(t *target, x vec, temp []vec) {
	t.xor(x, x, t.k(signBit(t)))
	expBody(t, x, temp)
	t.add(x, x, t.kf(1))
	t.div(x, t.krf(1, temp[0]), x)
}

// roundMagic added to a small number rounds it to an integer, which is then in the low bits of the sum.
const roundMagic = 3 << 22

func tanhConsts(t *target) []uint64 {
	c := append(t.floats(roundMagic, 2*math.Log2E, ln2Hi, ln2Lo), t.floats(expPoly...)...)
	return append(c, append(t.floats(1, 2, 10), signBit(t), signBit(t)-1)...)
}

// tanhBody: x = tanh x as m/(m+2) with m = e^(2|x|) - 1 = 2^n*(e^r - 1) + 2^n - 1, which keeps small arguments exact
// and gives 1 from 9.02 on.
func tanhBody(t *target, x vec, temp []vec) {
	n, p, y, scale := temp[0], temp[1], temp[2], temp[3]
	t.and(y, x, t.k(signBit(t)-1))
	t.min(y, t.krf(10, n), y)
	t.mov(n, t.kf(roundMagic))
	t.fma(n, y, t.kf(2*math.Log2E))
	t.VPSLLD(operand.U8(23), n, scale)
	t.VPADDD(t.kf(1), scale, scale) // 2^n
	t.sub(n, n, t.kf(roundMagic))
	t.add(y, y, y)
	t.fnma(y, n, t.kf(ln2Hi))
	t.fnma(y, n, t.kf(ln2Lo))
	t.poly(p, y, expPoly)
	t.mul(p, p, y)
	t.horner(p, y, y) // e^r - 1
	t.sub(y, scale, t.kf(1))
	t.horner(p, scale, y) // m
	t.add(y, p, t.kf(2))
	t.div(p, p, y)
	t.and(x, x, t.k(signBit(t)))
	t.or(x, x, p)
}

const sqrtHalfBits = 0x3f3504f3

func logConsts(t *target) []uint64 {
	c := append([]uint64{sqrtHalfBits}, t.floats(1, ln2Hi, ln2Lo, 0.5)...)
	c = append(c, t.floats(logPoly...)...)
	return append(c, append(t.floats(0, math.Inf(1), math.Inf(-1)), quietNaN)...)
}

const quietNaN = 0x7fc00000

// logBody: x = ln x as e*ln 2 + ln(1+f) with x = 2^e*(1+f).
func logBody(t *target, x vec, temp []vec) {
	e, f, p, sq := temp[0], temp[1], temp[2], temp[3]
	t.VPSUBD(t.kr(sqrtHalfBits, e), x, e)
	t.VPSRAD(operand.U8(23), e, e)
	t.VPSLLD(operand.U8(23), e, f)
	t.VPSUBD(f, x, f)
	t.sub(f, f, t.kf(1))
	t.VCVTDQ2PS(e, e)
	t.poly(p, f, logPoly)
	t.mul(sq, f, f)
	t.mul(p, p, f)
	t.mul(p, p, sq)
	t.fma(p, e, t.kf(ln2Lo))
	t.fnma(p, sq, t.kf(0.5))
	t.add(f, f, p)
	t.fma(f, e, t.kf(ln2Hi))
	const notLess = 0x15
	t.choose(f, less, x, t.kf(0), t.kr(quietNaN, p), sq)
	t.choose(f, equal, x, t.kf(0), t.krf(math.Inf(-1), p), sq)
	t.choose(f, notLess, x, t.kf(math.Inf(1)), x, sq)
	t.mov(x, f)
}

// expSum emits a sum of exponentials, which the function stores as well if it has a dst.
func (t *target) expSum(name, doc string, store bool) {
	params := "func(src *%[1]s, n int, sub %[1]s) %[1]s"
	if store {
		params = "func(dst, src *%[1]s, n int, sub %[1]s) %[1]s"
	}
	t.function(name, params, doc)
	if store {
		t.Load(t.Param("dst"), reg.RDI)
	}
	t.Load(t.Param("src"), reg.RSI)
	t.Load(t.Param("n"), reg.RCX)
	sum, sub, x, temp, mask := t.regs[0], t.regs[1], t.regs[2], t.regs[3:6], t.regs[6]
	t.zero(sum)
	t.broadcastParam(sub, "sub")
	t.hold(t.regs[7:], expConsts(t)...)
	t.loop(2, mask, func(disp int, masked bool) {
		t.load(x, operand.Mem{Base: reg.RSI, Index: reg.R8, Scale: 1, Disp: disp}, masked)
		t.sub(x, x, sub)
		expBody(t, x, temp)
		if store {
			t.store(operand.Mem{Base: reg.RDI, Index: reg.R8, Scale: 1, Disp: disp}, x, masked)
		}
		if masked {
			t.clearRest(x)
		}
		t.add(sum, sum, x)
	})
	t.horizontal(sum, t.add)
	t.retScalar(sum)
}
