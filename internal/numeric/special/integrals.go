package special

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mathext"
)

// Dawson returns e^-x² times the integral of e^t² from 0 to x, by Rybicki's exponentially
// convergent sum.
func Dawson(x float64) float64 {
	y := math.Abs(x)
	if y < 0.2 {
		q := x * x
		return x * (1 - 2./3*q*(1-.4*q*(1-2./7*q*(1-2./9*q*(1-2./11*q*(1-2./13*q))))))
	}
	if math.IsInf(y, 1) {
		return 0 / x
	}
	if y > 1e4 {
		return 1 / (2 * x)
	}
	// The samples are h apart and n is odd. Only samples near x contribute.
	const h = 0.2
	middle := 2 * math.Round(y/(2*h)) // even
	sum := 0.0
	for k := -41.0; k <= 41; k += 2 {
		n := middle + k
		d := y - n*h
		sum += math.Exp(-d*d) / n
	}
	return math.Copysign(sum/math.Sqrt(math.Pi), x)
}

// Expint returns the exponential integral Ei(x), the integral of e^t/t from minus infinity to x,
// for x >= 0.
func Expint(x float64) float64 {
	const euler = 0.57721566490153286061
	switch {
	case x == 0:
		return math.Inf(-1)
	case !(x > 0) || math.IsInf(x, 1):
		return math.NaN()
	case x < 40:
		term, sum := 1.0, 0.0
		for k := 1.0; k < 300; k++ {
			term *= x / k
			sum += term / k
			if term/k < 1e-17*sum {
				break
			}
		}
		return euler + math.Log(x) + sum
	}
	term, sum := 1.0, 1.0
	for k := 1.0; k < 60; k++ {
		next := term * k / x
		if next > term || next < 1e-17 {
			break
		}
		term = next
		sum += term
	}
	return math.Exp(x) / x * sum
}

// Fresnel returns the integrals of cos(πt²/2) and sin(πt²/2) from 0 to x.
func Fresnel(x float64) (c, s float64) {
	y := math.Abs(x)
	switch {
	case math.IsInf(y, 1):
		c, s = 0.5, 0.5
	case math.IsNaN(y):
		return y, y
	case y < 1.5:
		c, s = fresnelSeries(y)
	default:
		c, s = fresnelFraction(y)
	}
	return math.Copysign(c, x), math.Copysign(s, x)
}

func fresnelSeries(x float64) (c, s float64) {
	t := math.Pi / 2 * x * x
	term := x // x tⁿ/n!; terms belong to the two integrals alternately
	for n := 0.0; n < 100; n++ {
		part := term / (2*n + 1)
		switch int(n) % 4 {
		case 0:
			c += part
		case 1:
			s += part
		case 2:
			c -= part
		case 3:
			s -= part
		}
		if part < 1e-18 {
			break
		}
		term *= t / (n + 1)
	}
	return c, s
}

// fresnelFraction evaluates the continued fraction of erfc for a complex argument by Lentz's
// method.
func fresnelFraction(x float64) (c, s float64) {
	q := math.Pi * x * x
	if q > 1e14 {
		return 0.5, 0.5
	}
	b := complex(1, -q)
	cc, d := complex(1e300, 0), 1/b
	h := d
	n := -1.0
	for k := 2.0; k < 500; k++ {
		n += 2
		a := complex(-n*(n+1), 0)
		b += 4
		d = 1 / (a*d + b)
		cc = b + a/cc
		delta := cc * d
		h *= delta
		if math.Abs(real(delta)-1)+math.Abs(imag(delta)) < 1e-16 {
			break
		}
	}
	h *= complex(x, -x)
	// Reduce the angle modulo a full turn while it is still exact.
	angle := math.Mod(x*x, 4) * math.Pi / 2
	sin, cos := math.Sincos(angle)
	v := complex(0.5, 0.5) * (1 - complex(cos, sin)*h)
	return real(v), imag(v)
}

// Spence returns the dilogarithm of 1 - x: the integral of -ln t/(t-1) from 1 to x, for x >= 0.
func Spence(x float64) float64 {
	switch {
	case !(x >= 0) || math.IsInf(x, 1):
		return math.NaN()
	case x == 0:
		return math.Pi * math.Pi / 6
	case x == 1:
		return 0
	}
	v := mathext.Li2(complex(1-x, 0))
	if cmplx.IsNaN(v) {
		return math.NaN()
	}
	return real(v)
}
