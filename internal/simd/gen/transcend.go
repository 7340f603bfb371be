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
		{"log1p", "dst = ln(1 + src)", logConsts(t), log1pBody},
		{"expm1", "dst = e^src - 1", expm1Consts(t), expm1Body},
		{"erf", "dst = the error function of src", erfConsts(t), erfBody},
		{"sin", "dst = sin(src), for arguments up to a million", trigConsts(t), sinBody},
		{"cos", "dst = cos(src), for arguments up to a million", trigConsts(t), cosBody},
	} {
		t.stream(stream{
			name: u.name, doc: u.doc, in: []string{"src"}, out: []string{"dst"}, consts: u.consts, temps: 6, unroll: 2,
			body: func(t *target, x vars) {
				t.mov(x.v["dst"], x.v["src"])
				u.body(t, x.v["dst"], x.temp)
			},
		})
	}
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

// log1pBody: x = ln(1+x) as ln(u) * x/(u-1) for u = 1+x rounded, which makes up for the rounding.
func log1pBody(t *target, x vec, temp []vec) {
	u, d := temp[4], temp[5]
	t.add(u, x, t.kf(1))
	t.sub(d, u, t.kf(1))
	t.div(temp[0], x, d)
	t.mov(d, temp[0])
	logBody(t, u, temp)
	// Where u is 1 the quotient is not 1 but 0/0 or infinite; where x is infinite it is not a number, and so is ln(u) for
	// x below -1. The logarithm is right in the latter cases.
	t.mul(d, d, u)
	t.choose(d, equal, u, t.kf(0), x, temp[0])
	t.choose(d, equal, x, t.kf(math.Inf(1)), x, temp[0])
	t.mov(x, d)
}

func expm1Consts(t *target) []uint64 {
	c := t.floats(math.Log2E, ln2Hi, ln2Lo)
	c = append(c, t.floats(expPoly...)...)
	return append(c, append(t.floats(89, -18), 126<<23, t.float(0.5))...)
}

// expm1Body: x = e^x - 1 as 2^n*(e^r - 1) + 2^n - 1, computed with half the power of two, which is always finite.
func expm1Body(t *target, x vec, temp []vec) {
	n, p, scale := temp[0], temp[1], temp[2]
	t.min(x, t.krf(89, p), x)
	t.max(x, t.krf(-18, p), x)
	t.mul(n, x, t.kf(math.Log2E))
	t.round(nearest, n, n)
	t.fnma(x, n, t.kf(ln2Hi))
	t.fnma(x, n, t.kf(ln2Lo))
	t.poly(p, x, expPoly)
	t.mul(p, p, x)
	t.horner(p, x, x) // e^r - 1
	t.VCVTPS2DQ(n, n)
	t.VPSLLD(operand.U8(23), n, n)
	t.VPADDD(t.k(126<<23), n, scale) // 2^(n-1)
	t.sub(x, scale, t.kf(0.5))
	t.fma(x, p, scale)
	t.add(x, x, x)
	t.choose(x, equal, scale, t.kf(0.5), p, n) // half of p could be denormal
}

// erf x = x*P(x^2)/Q(x^2) up to erfMax, from where on it is 1; highest power first, maximal error 2.0e-8.
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

// Parts of pi/2, each a float32: products of the first with the numbers of quarter turns that are allowed differ from the
// argument by a float32.
const (
	halfPi1 = 1.57079637050628662109375
	halfPi2 = -4.37113900018624283e-8
	halfPi3 = -1.71512451000000e-15
)

// sinPoly is (sin r - r)/r^3, cosPoly is (cos r - 1 + r^2/2)/r^4 as polynomials of r^2 for |r| <= pi/4, highest power
// first; maximal errors 3.8e-9 of sin r relative to it, and 1.2e-10 of cos r.
var (
	sinPoly = []float64{-0.00019514629711527367, 0.008332156033616344, -0.16666654536194708}
	cosPoly = []float64{2.4432412291755114e-05, -0.0013887309859625583, 0.04166664555429773}
)

func trigConsts(t *target) []uint64 {
	c := t.floats(2/math.Pi, halfPi1, halfPi2, halfPi3, 0.5, 1)
	c = append(c, t.floats(sinPoly...)...)
	return append(append(c, t.floats(cosPoly...)...), signBit(t), 1)
}

func sinBody(t *target, x vec, temp []vec) { t.trig(x, temp, false) }
func cosBody(t *target, x vec, temp []vec) { t.trig(x, temp, true) }

// trig: x = sin x, or sin(x + pi/2), with n = round(x/(pi/2)) and r = x - n*pi/2: by n, the sine or the cosine of r or the
// opposite.
func (t *target) trig(x vec, temp []vec, cosine bool) {
	n, u, s, c := temp[0], temp[1], temp[2], temp[3]
	t.mul(n, x, t.kf(2/math.Pi))
	t.round(nearest, n, n)
	t.fnma(x, n, t.kf(halfPi1))
	t.fnma(x, n, t.kf(halfPi2))
	t.fnma(x, n, t.kf(halfPi3))
	t.VCVTPS2DQ(n, n)
	if cosine {
		t.VPADDD(t.k(1), n, n)
	}
	t.mul(u, x, x)
	t.poly(s, u, sinPoly)
	t.mul(s, s, u)
	t.horner(s, x, x)
	t.poly(c, u, cosPoly)
	t.mul(c, c, u)
	t.sub(c, c, t.kf(0.5))
	t.horner(c, u, t.kf(1))
	t.VPSLLD(operand.U8(31), n, x) // the sign of x tells which of the two
	if t.isa == avx512 {
		t.VPMOVD2M(x, reg.K2)
		t.VMOVAPS(c, reg.K2, s)
	} else {
		t.VBLENDVPS(x, c, s, s)
	}
	t.VPSRLD(operand.U8(1), n, n)
	t.VPSLLD(operand.U8(31), n, n)
	t.xor(x, s, n)
}
