package mathops

import "math"

// remainder computes math.Mod: x minus a multiple of y, with the sign of x and smaller than y. If
// the quotient is below 2^52, its rounded value has the correct integer part, or one more if it is
// next to an integer. The remainder of that multiple is representable in float64, so FMA computes
// it exactly.
func remainder(x, y float64) float64 {
	q := math.Trunc(x / y)
	// Also taken if a value is zero, infinite or NaN.
	if !(math.Abs(q) < 1<<52 && math.Abs(y) <= math.MaxFloat64) {
		return math.Mod(x, y)
	}
	m := math.FMA(-q, y, x)
	if m != 0 && (m < 0) != (x < 0) {
		return m + math.Copysign(y, x)
	}
	return math.Copysign(m, x)
}

// floorMod returns the remainder of the division that rounds down. It has the sign of y.
func floorMod(x, y float64) float64 {
	m := remainder(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}
