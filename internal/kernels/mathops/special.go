package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/special"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	for _, f := range []struct {
		name, doc string
		f         func(float64) float64
	}{
		{"Digamma", "Computes the derivative of the logarithm of the gamma function.", special.Digamma},
		{"Erfinv", "Computes the inverse of the error function.", math.Erfinv},
		{"Ndtri", "Computes the quantile function of the standard normal distribution.", special.Ndtri},
		{"Dawsn", "Computes Dawson's integral: e^-x² times the integral of e^t² from 0 to x.", special.Dawson},
		{"Expint", "Computes the exponential integral Ei.", special.Expint},
		{"FresnelCos", "Computes the integral of cos(πt²/2) from 0 to x.", func(x float64) float64 { c, _ := special.Fresnel(x); return c }},
		{"FresnelSin", "Computes the integral of sin(πt²/2) from 0 to x.", func(x float64) float64 { _, s := special.Fresnel(x); return s }},
		{"Spence", "Computes Spence's integral, the dilogarithm of 1-x.", special.Spence},
		{"BesselI0", "Computes the modified Bessel function of the first kind of order 0.", special.BesselI0},
		{"BesselI1", "Computes the modified Bessel function of the first kind of order 1.", special.BesselI1},
		{"BesselI0e", "Computes the modified Bessel function of the first kind of order 0, times e^-|x|.", special.BesselI0e},
		{"BesselI1e", "Computes the modified Bessel function of the first kind of order 1, times e^-|x|.", special.BesselI1e},
		{"BesselK0", "Computes the modified Bessel function of the second kind of order 0.", special.BesselK0},
		{"BesselK1", "Computes the modified Bessel function of the second kind of order 1.", special.BesselK1},
		{"BesselK0e", "Computes the modified Bessel function of the second kind of order 0, times e^x.", special.BesselK0e},
		{"BesselK1e", "Computes the modified Bessel function of the second kind of order 1, times e^x.", special.BesselK1e},
		{"BesselJ0", "Computes the Bessel function of the first kind of order 0.", finite(math.J0)},
		{"BesselJ1", "Computes the Bessel function of the first kind of order 1.", finite(math.J1)},
		{"BesselY0", "Computes the Bessel function of the second kind of order 0.", positive(math.Y0)},
		{"BesselY1", "Computes the Bessel function of the second kind of order 1.", positive(math.Y1)},
	} {
		unary(f.name, f.doc, floats, elementwise.Floats(5*costly, f.f))
	}

	const wide = "{float32, float64}"
	for _, f := range []struct {
		name, doc, types string
		in               []string
		f                func(x, y float64) float64
		out              []string
	}{
		{"Igamma", "Computes the regularized lower incomplete gamma function P(a, x).", floats, []string{"a: T", "x: T"}, special.Igamma, nil},
		{"Igammac", "Computes the regularized upper incomplete gamma function Q(a, x).", floats, []string{"a: T", "x: T"}, special.Igammac, nil},
		{"IgammaGradA", "Computes the derivative of Igamma with respect to a.", wide, []string{"a: T", "x: T"}, special.IgammaGradA, nil},
		{"RandomGammaGrad", "Computes the derivative of a sample of a gamma distribution with respect to the shape alpha.", wide,
			[]string{"alpha: T", "sample: T"}, special.GammaSampleGrad, []string{"output: T"}},
		{"Zeta", "Computes the Hurwitz zeta function.", wide, []string{"x: T", "q: T"}, special.Zeta, nil},
		{"Polygamma", "Computes the derivative of order a of the digamma function at x.", wide, []string{"a: T", "x: T"}, special.Polygamma, nil},
	} {
		binary(opdef.Def{Name: f.name, Doc: f.doc, In: f.in, Out: f.out}, f.types, elementwise.Floats2(20*costly, f.f))
	}
}

// finite returns f with NaN at infinity.
func finite(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, 0) {
			return math.NaN()
		}
		return f(x)
	}
}

// positive returns f with minus infinity for x <= 0 and NaN at infinity.
func positive(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		switch {
		case x <= 0:
			return math.Inf(-1)
		case math.IsInf(x, 1):
			return math.NaN()
		}
		return f(x)
	}
}
