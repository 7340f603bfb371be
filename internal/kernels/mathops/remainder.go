package mathops

import "math"

// remainder is math.Mod: x less a multiple of y, with the sign of x and smaller than y. Below 2^52,
// the quotient as it is rounded has the right integer part or, next to an integer, one more than
// that; what is left of x is a number that float64 has, so that it is found without an error.
func remainder(x, y float64) float64 {
	q := math.Trunc(x / y)
	// also of zeros and of what is infinite or no number
	if !(math.Abs(q) < 1<<52 && math.Abs(y) <= math.MaxFloat64) {
		return math.Mod(x, y)
	}
	m := math.FMA(-q, y, x)
	if m != 0 && (m < 0) != (x < 0) {
		return m + math.Copysign(y, x)
	}
	return math.Copysign(m, x)
}

// floorMod is the remainder of the division that rounds down: it has the sign of y.
func floorMod(x, y float64) float64 {
	m := remainder(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}
