package philox

import (
	"math"
	"math/big"
	"sync"
)

// ln 2 in two parts; multiples of the first up to 2^11 are exact.
const ln2High, ln2Low = 0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45

// log64 returns the natural logarithm of a positive normal number, from a table and a polynomial.
// It fuses the same steps as the C library.
func log64(x float64) float64 {
	const first = 0x3fe6000000000000 // bits of the start of the table
	if 1-0x1p-4 <= x && x < 1+0x1.09p-4 {
		return logNear1(x - 1)
	}
	b := math.Float64bits(x)
	t := b - first
	part, exponent := &logParts[t>>45%128], float64(int64(t)>>52)
	r := math.FMA(math.Float64frombits(b-t&(0xfff<<52)), part[0], -1) // x = 2^exponent * c * (1+r)
	w := math.FMA(exponent, ln2High, part[1])
	high := w + r
	low := math.FMA(exponent, ln2Low, w-high+r)
	r2 := r * r
	y := math.FMA(r2, math.FMA(r, -0x1.55575e506c89fp-3, 0x1.999b324f10111p-3),
		math.FMA(r, -0x1.fffffffeb459p-3, 0x1.555555551305bp-2))
	return math.FMA(r*r2, y, math.FMA(r2, -0x1.0000000000001p-1, low)) + high
}

// logNear1 returns ln(1+r) for small r.
func logNear1(r float64) float64 {
	r2 := r * r
	r3 := r * r2
	cubic := func(c0, c1, c2 float64) float64 { return math.FMA(r2, c2, math.FMA(r, c1, c0)) }
	y := math.FMA(r3, -0x1.5521375d145cdp-4, cubic(0x1.c7184282ad6cap-4, -0x1.999eb43b068ffp-4, 0x1.78182f7afd085p-4))
	y = math.FMA(r3, y, cubic(-0x1.55555556745a7p-3, 0x1.24924a344de3p-3, -0x1.fffffa4423d65p-4))
	y = math.FMA(r3, y, cubic(0x1.5555555555577p-2, -0x1.ffffffffffdcbp-3, 0x1.999999995dd0cp-3))

	w := r * 0x1p27
	upper := math.FMA(r, 0x1p27, r) - w // upper half of the bits of r, whose square is exact
	high := math.FMA(upper*upper, -0.5, r)
	low := math.FMA(upper*upper, -0.5, r-high)
	low = math.FMA(-0.5*(r-upper), upper+r, low)
	return math.FMA(r3, y, low) + high
}

// sincos64 returns the sine and the cosine of a number in [0, 2π].
func sincos64(x float64) (sin, cos float64) {
	n, high, low := quadrant(x)
	s, c := sinSum(high, low), cosSum(high, low)
	switch n {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// quadrant returns the number of quarter turns that is closest to x, with 4 counted as 0, and the
// remaining angle in two parts.
func quadrant(x float64) (n int, high, low float64) {
	const halfPiHigh, halfPiLow = 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54
	if x < 0.85546875 { // beyond π/4, up to the end of the table below
		return 0, x, 0
	}
	turns := 1.0
	if x >= 0x1.368fdp+1 { // beyond 3π/4, likewise
		turns = math.Round(x * (2 / math.Pi))
	}
	turned := turns * halfPiHigh
	rest := x - turned
	tail := -math.FMA(turns, halfPiHigh, -turned) - turns*halfPiLow
	high = rest + tail
	return int(turns) & 3, high, rest - high + tail
}

// tablePoint is the sine and the cosine of a multiple of 1/128, each in two parts.
type tablePoint struct{ sin, sinLow, cos, cosLow float64 }

// points returns the sines and cosines of 0, 1/128, 2/128, … up to the largest remainder of
// quadrant.
var points = sync.OnceValue(func() *[112]tablePoint {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	mul := func(a, b *big.Float) *big.Float { return number(0).Mul(a, b) }
	split := func(x *big.Float) (high, low float64) {
		high, _ = x.Float64()
		low, _ = number(0).Sub(x, number(high)).Float64()
		return high, low
	}
	// The powers of 1/128 divided by factorials are the terms of the two series, alternately.
	step := [2]*big.Float{number(0), number(1)} // sine and cosine of 1/128
	for term, i := number(1), 1; i < 24; i++ {
		term.Quo(mul(term, number(1.0/128)), number(float64(i)))
		signed := number(0).Set(term)
		if i/2%2 == 1 {
			signed.Neg(signed)
		}
		step[(i+1)%2].Add(step[(i+1)%2], signed)
	}
	var table [112]tablePoint
	sin, cos := number(0), number(1)
	for i := range table {
		p := &table[i]
		p.sin, p.sinLow = split(sin)
		p.cos, p.cosLow = split(cos)
		sin, cos = number(0).Add(mul(sin, step[1]), mul(cos, step[0])),
			number(0).Sub(mul(cos, step[1]), mul(sin, step[0]))
	}
	return &table
})

// nearest returns the point of the table nearest to |x|, and the remainder of |x|.
func nearest(x float64) (p *tablePoint, rest float64) {
	x = math.Abs(x)
	k := math.RoundToEven(x * 128)
	return &points()[int(k)], x - k/128
}

// Polynomials for the sine and the cosine of the remainder: sin r = r + r³(…), cos r = 1 - r²(…).
func sineTail(r2 float64) float64 {
	return math.FMA(r2, 8.33333214285722277379541354343671e-03, -1.66666666666664880952546298448555e-01)
}

func cosineTail(r2 float64) float64 {
	return math.FMA(r2, math.FMA(r2, 1.38888874007937613028114285595617e-03, -4.16666666666664434524222570944589e-02), 0.5)
}

// sinSum returns the sine of x + dx, for dx much smaller than x.
func sinSum(x, dx float64) float64 {
	if math.Abs(x) < 0.126 {
		x2 := x * x
		y := math.FMA(-0x1.addffc2fcdf59p-26, x2, 0x1.71de27b9a7ed9p-19)
		y = math.FMA(y, x2, -0x1.a01a019db08b8p-13)
		y = math.FMA(y, x2, 0x1.1111111110ecep-7)
		y = math.FMA(y, x2, -0x1.5555555555555p-3)
		return x + math.FMA(math.FMA(y, x, -0.5*dx), x2, dx)
	}
	if x < 0 {
		dx = -dx
	}
	p, r := nearest(x)
	r2 := r * r
	s := r + math.FMA(r*r2, sineTail(r2), dx)
	c := math.FMA(r, dx, r2*cosineTail(r2))
	y := math.FMA(p.cos, s, math.FMA(-p.sin, c, math.FMA(s, p.cosLow, p.sinLow)))
	return math.Copysign(p.sin+y, x)
}

// cosSum returns the cosine of x + dx, for dx much smaller than x.
func cosSum(x, dx float64) float64 {
	if x < 0 {
		dx = -dx
	}
	p, r := nearest(x)
	r += dx
	r2 := r * r
	s, c := math.FMA(r*r2, sineTail(r2), r), r2*cosineTail(r2)
	return p.cos + math.FMA(-p.sin, s, math.FMA(-p.cos, c, math.FMA(-s, p.sinLow, p.cosLow)))
}
