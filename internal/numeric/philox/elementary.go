package philox

import "math"

// The transforms of this package need elementary functions that are bit-identical to those of the C
// library that TensorFlow uses. Correctly rounded results would differ. Since version 2.28, glibc
// has the logarithms and the float32 sine and cosine of Arm's Optimized Routines (MIT license). The
// functions below compute the same results for the arguments that occur.

// logTable holds, for sixteen parts of [0.7, 1.4), the reciprocal of a point c near the middle, and
// log c.
var logTable = [16][2]float64{
	{0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2},
	{0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
	{0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2},
	{0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
	{0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3},
	{0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
	{0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4},
	{0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
	{0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5},
	{0x1p+0, 0x0p+0},
	{0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5},
	{0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
	{0x1.b2036576afce6p-1, 0x1.526e57720db08p-3},
	{0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
	{0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2},
	{0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2},
}

// log32 returns the natural logarithm of a positive normal number.
func log32(x float32) float32 {
	const first = 0x3f330000 // bits of the start of the table
	b := math.Float32bits(x)
	t := b - first
	part, exponent := &logTable[t>>19%16], float64(int32(t)>>23)
	r := float64(math.Float32frombits(b-t&0xff800000))*part[0] - 1 // x = 2^exponent * c * (1+r)
	r2 := r * r
	y := 0x1.5575b0be00b6ap-2*r - 0x1.ffffef20a4123p-2
	y = y - 0x1.00ea348b88334p-2*r2
	return float32(y*r2 + (part[1] + exponent*math.Ln2 + r))
}

// sincos32 returns the sine and the cosine of a number in [0, 2π].
func sincos32(x float32) (sin, cos float32) {
	r := float64(x)
	quadrant := int(r*(2/math.Pi) + 0.5)
	r -= float64(quadrant) * (math.Pi / 2)
	s, c := polySin(r), polyCos(r)
	switch quadrant {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// polySin returns the sine of a number in [-π/4, π/4].
func polySin(x float64) float32 {
	x2 := x * x
	x3 := x2 * x
	s := x - 0x1.555545995a603p-3*x3
	return float32(s + x3*x2*(0x1.1107605230bc4p-7-0x1.994eb3774cf24p-13*x2))
}

// polyCos returns the cosine of a number in [-π/4, π/4].
func polyCos(x float64) float32 {
	x2 := x * x
	x4 := x2 * x2
	c := 1 - 0x1.ffffffd0c621cp-2*x2 + 0x1.55553e1068f19p-5*x4
	return float32(c + x4*x2*(0x1.99343027bf8c3p-16*x2-0x1.6c087e89a359dp-10))
}

// Log32 returns the natural logarithm of a number in [0, 1) as the C library computes it. The
// number must be 0 or at least 2^-126.
func Log32(x float32) float32 {
	if x == 0 {
		return float32(math.Inf(-1))
	}
	return log32(x)
}
