// Package special implements functions of mathematical physics that neither Go nor gonum has, in
// double precision: incomplete gamma functions with their derivatives, Bessel functions, and some
// integrals.
//
// As in TensorFlow, the functions return NaN outside of their domains.
package special

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Igamma returns the regularized lower incomplete gamma function P(a, x).
func Igamma(a, x float64) float64 {
	switch {
	case !(x >= 0) || !(a > 0):
		return math.NaN()
	case x == 0:
		return 0
	case math.IsInf(a, 1):
		if math.IsInf(x, 1) {
			return math.NaN()
		}
		return 0
	case math.IsInf(x, 1):
		return 1
	}
	return mathext.GammaIncReg(a, x)
}

// Igammac returns the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).
func Igammac(a, x float64) float64 {
	switch {
	case !(x >= 0) || !(a > 0):
		return math.NaN()
	case x == 0:
		return 1
	case math.IsInf(a, 1):
		if math.IsInf(x, 1) {
			return math.NaN()
		}
		return 1
	case math.IsInf(x, 1):
		return 0
	}
	return mathext.GammaIncRegComp(a, x)
}

// IgammaGradA returns the derivative of P(a, x) with respect to a.
func IgammaGradA(a, x float64) float64 {
	switch {
	case !(x >= 0) || !(a > 0):
		return math.NaN()
	case x == 0 || math.IsInf(a, 1) || math.IsInf(x, 1):
		return 0
	}
	return GammaSampleGrad(a, x) * -math.Exp((a-1)*math.Log(x)-x-lgamma(a))
}

func lgamma(x float64) float64 {
	lg, _ := math.Lgamma(x)
	return lg
}

// GammaSampleGrad returns the derivative, with respect to a, of a sample x of the gamma
// distribution of shape a and scale 1: the derivative of P(a, x) with respect to a, divided by
// minus its derivative with respect to x.
func GammaSampleGrad(a, x float64) float64 {
	switch {
	case !(x >= 0) || !(a > 0):
		return math.NaN()
	case x == 0:
		return 0
	case x > 1 && x > a:
		return x * upperGradA(a, x)
	}
	return -x / a * lowerGradA(a, x)
}

// lowerGradA differentiates the series P(a, x) = x^a e^-x / Γ(a+1) · Σ x^n / ((a+1)…(a+n)) term by
// term. The caller multiplies the result by the factor of the sum.
func lowerGradA(a, x float64) float64 {
	term, termGrad := 1.0, 0.0 // of the sum, and its derivative
	sum, sumGrad := 1.0, 0.0
	for n := 1.0; n < 2000; n++ {
		k := a + n
		termGrad = (termGrad - term/k) * x / k
		term *= x / k
		sum, sumGrad = sum+term, sumGrad+termGrad
		if math.Abs(termGrad) <= 1e-17*math.Abs(sumGrad) {
			break
		}
	}
	return sumGrad + sum*(math.Log(x)-Digamma(a+1))
}

// upperGradA differentiates the continued fraction Q(a, x) = x^a e^-x / Γ(a) · 1/(x+1-a-
// 1(1-a)/(x+3-a- …)) step by step, in the recurrences of its numerators p and denominators q. The
// caller multiplies the result by the factor of the fraction.
func upperGradA(a, x float64) float64 {
	y, z, c := 1-a, x+2-a, 0.0
	p2, q2, p1, q1 := 1.0, x, x+1, z*x
	dp2, dq2, dp1, dq1 := 0.0, 0.0, 0.0, -x
	value, grad := p1/q1, (dp1-p1/q1*dq1)/q1
	for range 2000 {
		c, y, z = c+1, y+1, z+2
		yc := y * c
		p, q := p1*z-p2*yc, q1*z-q2*yc
		dp, dq := dp1*z-p1-dp2*yc+p2*c, dq1*z-q1-dq2*yc+q2*c
		if q != 0 {
			next := p / q
			nextGrad := (dp - next*dq) / q
			done := math.Abs(nextGrad-grad) <= 1e-16*math.Abs(nextGrad) || nextGrad == grad
			value, grad = next, nextGrad
			if done {
				break
			}
		}
		p2, p1, q2, q1 = p1, p, q1, q
		dp2, dp1, dq2, dq1 = dp1, dp, dq1, dq
		if math.Abs(p) > 1e200 {
			const s = 1e-200
			p2, p1, q2, q1 = p2*s, p1*s, q2*s, q1*s
			dp2, dp1, dq2, dq1 = dp2*s, dp1*s, dq2*s, dq1*s
		}
	}
	return grad + value*(math.Log(x)-Digamma(a))
}

// Digamma returns the logarithmic derivative of the gamma function.
func Digamma(x float64) float64 {
	if x <= 0 && x == math.Floor(x) {
		return math.NaN()
	}
	value := 0.0
	if x < 0 {
		value = -math.Pi / math.Tan(math.Pi*(x-math.Round(x)))
		x = 1 - x
	}
	for ; x < 12; x++ {
		value -= 1 / x
	}
	// The asymptotic series in 1/x². Its coefficients are Bernoulli numbers divided by their index.
	q, tail := 1/(x*x), 0.0
	for _, b := range [...]float64{1. / 12, 691. / 32760, 1. / 132, 1. / 240, 1. / 252, 1. / 120, 1. / 12} {
		tail = q * (b - tail)
	}
	return value + math.Log(x) - 1/(2*x) - tail
}

// Zeta returns the Hurwitz zeta function Σ (q+n)^-x.
func Zeta(x, q float64) float64 {
	switch {
	case x == 1:
		return math.Inf(1)
	case !(x > 1):
		return math.NaN()
	case q <= 0:
		if q == math.Floor(q) {
			if x == math.Floor(x) && math.Mod(x, 2) == 0 {
				return math.Inf(1)
			}
			return math.NaN()
		}
		if x != math.Floor(x) {
			return math.NaN()
		}
		if q < -zetaTerms {
			return farZeta(x, q)
		}
	}
	return mathext.Zeta(x, q)
}

// zetaTerms is the number of terms with a negative base that are added one by one.
const zetaTerms = 100

// farZeta is Zeta for an integer x and a negative q that is none. The terms before the first
// positive base f are those of two other series: powers of -(1-f), -(2-f), up to -(m-f).
func farZeta(x, q float64) float64 {
	m := math.Ceil(-q)
	f := q + m
	negative := mathext.Zeta(x, 1-f) - mathext.Zeta(x, m+1-f)
	if math.Mod(x, 2) != 0 {
		negative = -negative
	}
	return mathext.Zeta(x, f) + negative
}

// Polygamma returns derivative n of [Digamma], for integers n >= 0.
func Polygamma(n, x float64) float64 {
	if n != math.Floor(n) || n < 0 {
		return math.NaN()
	}
	if n == 0 {
		return Digamma(x)
	}
	sign := 1.0
	if math.Mod(n, 2) == 0 {
		sign = -1
	}
	return sign * math.Gamma(n+1) * Zeta(n+1, x)
}

// Betainc returns the regularized incomplete beta function I_x(a, b).
func Betainc(a, b, x float64) float64 {
	switch {
	case !(a > 0) || !(b > 0) || !(x >= 0 && x <= 1):
		return math.NaN()
	case x == 0 || x == 1:
		return x
	}
	return mathext.RegIncBeta(a, b, x)
}

// Ndtri returns the x at which the cumulative distribution function of the standard normal
// distribution is p.
func Ndtri(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }
