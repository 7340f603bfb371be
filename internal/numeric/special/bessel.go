package special

import "math"

// large is the argument from which on the asymptotic expansions of I0 and I1 have double precision.
const large = 30

// BesselI0 returns the modified Bessel function of the first kind of order 0.
func BesselI0(x float64) float64 {
	x = math.Abs(x)
	if x < large {
		return besselISeries(x, 0)
	}
	return besselIExpansion(x, 0) * math.Exp(x)
}

// BesselI1 returns the modified Bessel function of the first kind of order 1.
func BesselI1(x float64) float64 {
	y := math.Abs(x)
	if y < large {
		return math.Copysign(besselISeries(y, 1), x)
	}
	return math.Copysign(besselIExpansion(y, 1)*math.Exp(y), x)
}

// BesselI0e returns BesselI0(x) e^-|x|.
func BesselI0e(x float64) float64 {
	x = math.Abs(x)
	if x < large {
		return besselISeries(x, 0) * math.Exp(-x)
	}
	return besselIExpansion(x, 0)
}

// BesselI1e returns BesselI1(x) e^-|x|.
func BesselI1e(x float64) float64 {
	y := math.Abs(x)
	if y < large {
		return math.Copysign(besselISeries(y, 1)*math.Exp(-y), x)
	}
	return math.Copysign(besselIExpansion(y, 1), x)
}

// besselISeries returns (x/2)^v Σ (x²/4)^k / (k! (k+v)!). All terms are positive.
func besselISeries(x, v float64) float64 {
	q := x * x / 4
	term := 1.0
	if v == 1 {
		term = x / 2
	}
	sum := term
	for k := 1.0; k < 200; k++ {
		term *= q / (k * (k + v))
		sum += term
		if term <= 1e-17*sum {
			break
		}
	}
	return sum
}

// besselIExpansion returns Iv(x) e^-x by Hankel's expansion for large x.
func besselIExpansion(x, v float64) float64 {
	if math.IsInf(x, 1) {
		return 0
	}
	term, sum := 1.0, 1.0
	for k := 1.0; k < 40; k++ {
		next := -term * (4*v*v - (2*k-1)*(2*k-1)) / (k * 8 * x)
		if math.Abs(next) > math.Abs(term) {
			break
		}
		term = next
		sum += term
		if math.Abs(term) < 1e-17 {
			break
		}
	}
	return sum / math.Sqrt(2*math.Pi*x)
}

// BesselK0 returns the modified Bessel function of the second kind of order 0.
func BesselK0(x float64) float64 { return besselK(x, 0, false) }

// BesselK1 returns the modified Bessel function of the second kind of order 1.
func BesselK1(x float64) float64 { return besselK(x, 1, false) }

// BesselK0e returns BesselK0(x) e^x.
func BesselK0e(x float64) float64 { return besselK(x, 0, true) }

// BesselK1e returns BesselK1(x) e^x.
func BesselK1e(x float64) float64 { return besselK(x, 1, true) }

func besselK(x float64, order int, scaled bool) float64 {
	switch {
	case x <= 0:
		return math.Inf(1)
	case math.IsNaN(x):
		return x
	case math.IsInf(x, 1):
		return 0
	}
	var k0, k1 float64
	// beyond this the correction is smaller than the rounding, and the recurrence would overflow
	if x > 1e16 {
		k0 = math.Sqrt(math.Pi / (2 * x))
		k1 = k0
		if !scaled {
			k0, k1 = 0, 0
		}
	} else if x <= 2 {
		k0, k1 = besselKSmall(x)
		if scaled {
			k0, k1 = k0*math.Exp(x), k1*math.Exp(x)
		}
	} else {
		k0, k1 = besselKLarge(x)
		if !scaled {
			k0, k1 = k0*math.Exp(-x), k1*math.Exp(-x)
		}
	}
	if order == 0 {
		return k0
	}
	return k1
}

// besselKSmall sums the series of K0 and K1 at zero, which contain harmonic numbers and the
// logarithm.
func besselKSmall(x float64) (k0, k1 float64) {
	const euler = 0.57721566490153286061
	q, log := x*x/4, math.Log(x/2)
	k0 = -(log + euler) * besselISeries(x, 0)
	k1 = 1/x + log*besselISeries(x, 1)
	term, harmonic := 1.0, 0.0 // (x²/4)^k / k!², 1 + … + 1/k
	k1 -= x / 4 * (1 - 2*euler)
	for k := 1.0; k < 60; k++ {
		term *= q / (k * k)
		harmonic += 1 / k
		k0 += term * harmonic
		// K1 has the terms (x²/4)^k / (k! (k+1)!) times the sum of two consecutive harmonic
		// numbers.
		k1 -= x / 4 * term / (k + 1) * (2*harmonic + 1/(k+1) - 2*euler)
		if term*harmonic < 1e-18 {
			break
		}
	}
	return k0, k1
}

// besselKLarge returns K0 and K1 times e^x by Steed's evaluation of Temme's continued fraction.
func besselKLarge(x float64) (k0, k1 float64) {
	b := 2 * (1 + x)
	d := 1 / b
	h, delta := d, d
	q1, q2 := 0.0, 1.0
	const a1 = 0.25
	q, c := a1, a1
	a := -a1
	s := 1 + q*delta
	for i := 2.0; i < 10000; i++ {
		a -= 2 * (i - 1)
		c = -a * c / i
		qNew := (q1 - b*q2) / a
		q1, q2 = q2, qNew
		q += c * qNew
		b += 2
		d = 1 / (b + a*d)
		delta = (b*d - 1) * delta
		h += delta
		ds := q * delta
		s += ds
		if math.Abs(ds/s) < 1e-17 {
			break
		}
	}
	h *= a1
	k0 = math.Sqrt(math.Pi/(2*x)) / s
	return k0, k0 * (x + 0.5 - h) / x
}
