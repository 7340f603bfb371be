package gradients

import (
	"math"

	"github.com/weft-ml/weft/op"
)

// derivative returns the rule of a real function of one input with the given derivative.
func derivative(f func(s *op.Scope, x, y op.Output) op.Output) Rule {
	return unary(func(s *op.Scope, dy, x, y op.Output) op.Output { return op.Mul(s, dy, f(s, x, y)) })
}

// Special functions. Formulas are from the NIST Digital Library of Mathematical Functions.
func init() {
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output { return op.Digamma(s, x) }), "Lgamma")
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output { return op.Polygamma(s, number(s, x, 1), x) }), "Digamma")
	Register(derivative(func(s *op.Scope, _, y op.Output) op.Output {
		return op.Mul(s, number(s, y, math.Sqrt(math.Pi)/2), op.Exp(s, op.Square(s, y)))
	}), "Erfinv")
	Register(derivative(func(s *op.Scope, _, y op.Output) op.Output {
		return op.Mul(s, number(s, y, math.Sqrt(2*math.Pi)), op.Exp(s, op.Mul(s, op.Square(s, y), number(s, y, 0.5))))
	}), "Ndtri")
	Register(derivative(func(s *op.Scope, x, y op.Output) op.Output {
		return op.Sub(s, number(s, x, 1), op.Mul(s, number(s, x, 2), op.Mul(s, x, y)))
	}), "Dawsn")
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output { return op.RealDiv(s, op.Exp(s, x), x) }), "Expint")
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output {
		return op.Cos(s, op.Mul(s, number(s, x, math.Pi/2), op.Square(s, x)))
	}), "FresnelCos")
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output {
		return op.Sin(s, op.Mul(s, number(s, x, math.Pi/2), op.Square(s, x)))
	}), "FresnelSin")
	Register(derivative(func(s *op.Scope, x, _ op.Output) op.Output {
		one := number(s, x, 1)
		return op.SelectV2(s, op.Equal(s, x, one), number(s, x, -1), op.RealDiv(s, op.Log(s, x), op.Sub(s, one, x)))
	}), "Spence")
	Register(func(c *Call) []Grad { return incompleteGamma(c, 1) }, "Igamma")
	Register(func(c *Call) []Grad { return incompleteGamma(c, -1) }, "Igammac")
	Register(incompleteBeta, "Betainc")
	Register(binary(func(s *op.Scope, dz, x, q, _ op.Output) (dx, dq op.Output) {
		return op.Output{}, op.Mul(s, dz, op.Neg(s, op.Mul(s, x, op.Zeta(s, op.AddV2(s, x, number(s, x, 1)), q))))
	}), "Zeta")
	Register(binary(func(s *op.Scope, dz, n, x, _ op.Output) (dn, dx op.Output) {
		return op.Output{}, op.Mul(s, dz, op.Polygamma(s, op.AddV2(s, n, number(s, n, 1)), x))
	}), "Polygamma")
}

// incompleteGamma is the rule of the regularized incomplete gamma functions: the lower one and,
// with sign -1, the upper one.
func incompleteGamma(c *Call, sign float64) []Grad {
	s, a, x := c.S, c.In(0), c.In(1)
	dz := op.Mul(s, number(s, x, sign), c.DY(0))
	log := op.Sub(s, op.Mul(s, op.Sub(s, a, number(s, a, 1)), op.Log(s, x)), op.AddV2(s, x, op.Lgamma(s, a)))
	return List(unbroadcast(s, a, x, op.Mul(s, dz, op.IgammaGradA(s, a, x)), op.Mul(s, dz, op.Exp(s, log))))
}

// incompleteBeta differentiates by x only, as TensorFlow does.
func incompleteBeta(c *Call) []Grad {
	s, a, b, x := c.S, c.In(0), c.In(1), c.In(2)
	one := number(s, x, 1)
	logBeta := op.Sub(s, op.AddV2(s, op.Lgamma(s, a), op.Lgamma(s, b)), op.Lgamma(s, op.AddV2(s, a, b)))
	log := op.AddV2(s, op.Xlog1py(s, op.Sub(s, b, one), op.Neg(s, x)), op.Xlogy(s, op.Sub(s, a, one), x))
	dx := op.Mul(s, c.DY(0), op.Exp(s, op.Sub(s, log, logBeta)))
	_, dx = unbroadcast(s, a, x, op.Output{}, dx)
	return List(op.Output{}, op.Output{}, dx)
}

// Bessel functions. At x = 0, where a formula would divide by zero, the limit is used.
func init() {
	type build = func(s *op.Scope, x, y op.Output) op.Output
	over := func(s *op.Scope, y, x op.Output) op.Output { return op.RealDiv(s, y, x) }
	atZero := func(limit float64, f build) build {
		return func(s *op.Scope, x, y op.Output) op.Output {
			return op.SelectV2(s, op.Equal(s, x, number(s, x, 0)), number(s, x, limit), f(s, x, y))
		}
	}
	for name, f := range map[string]build{
		"BesselI0": func(s *op.Scope, x, _ op.Output) op.Output { return op.BesselI1(s, x) },
		"BesselI0e": func(s *op.Scope, x, y op.Output) op.Output {
			return op.Sub(s, op.BesselI1e(s, x), op.Mul(s, op.Sign(s, x), y))
		},
		"BesselI1": atZero(1, func(s *op.Scope, x, y op.Output) op.Output { return op.Sub(s, op.BesselI0(s, x), over(s, y, x)) }),
		"BesselI1e": atZero(0.5, func(s *op.Scope, x, y op.Output) op.Output {
			return op.Sub(s, op.BesselI0e(s, x), op.Mul(s, y, op.AddV2(s, op.Sign(s, x), op.Reciprocal(s, x))))
		}),
		"BesselK0":  func(s *op.Scope, x, _ op.Output) op.Output { return op.Neg(s, op.BesselK1(s, x)) },
		"BesselK0e": func(s *op.Scope, x, y op.Output) op.Output { return op.Sub(s, y, op.BesselK1e(s, x)) },
		"BesselK1": func(s *op.Scope, x, y op.Output) op.Output {
			return op.Neg(s, op.AddV2(s, op.BesselK0(s, x), over(s, y, x)))
		},
		"BesselK1e": func(s *op.Scope, x, y op.Output) op.Output {
			return op.Sub(s, op.Mul(s, y, op.Sub(s, number(s, x, 1), op.Reciprocal(s, x))), op.BesselK0e(s, x))
		},
		"BesselJ0": func(s *op.Scope, x, _ op.Output) op.Output { return op.Neg(s, op.BesselJ1(s, x)) },
		"BesselJ1": atZero(0.5, func(s *op.Scope, x, y op.Output) op.Output { return op.Sub(s, op.BesselJ0(s, x), over(s, y, x)) }),
		"BesselY0": func(s *op.Scope, x, _ op.Output) op.Output { return op.Neg(s, op.BesselY1(s, x)) },
		"BesselY1": func(s *op.Scope, x, y op.Output) op.Output { return op.Sub(s, op.BesselY0(s, x), over(s, y, x)) },
	} {
		Register(derivative(f), name)
	}
}
