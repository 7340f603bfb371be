package gradients

import "github.com/weft-ml/weft/op"

func init() {
	Register(unary(func(s *op.Scope, dy, _, _ op.Output) op.Output { return op.Neg(s, dy) }), "Neg")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Sign(s, x)) }), "Abs")
	// The operation conjugates y itself.
	Register(func(c *Call) []Grad { return List(op.ReciprocalGrad(c.S, c.Out(0), c.DY(0))) }, "Reciprocal", "Inv")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Mul(s, number(s, x, 2), x))
	}), "Square")
	// The operation conjugates y itself.
	Register(func(c *Call) []Grad { return List(op.SqrtGrad(c.S, c.Out(0), c.DY(0))) }, "Sqrt")
	// The operation conjugates y itself.
	Register(func(c *Call) []Grad { return List(op.RsqrtGrad(c.S, c.Out(0), c.DY(0))) }, "Rsqrt")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.Mul(s, dy, y) }), "Exp")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output {
		return op.Mul(s, dy, op.AddV2(s, y, number(s, y, 1)))
	}), "Expm1")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Reciprocal(s, x)) }), "Log")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Reciprocal(s, op.AddV2(s, number(s, x, 1), x)))
	}), "Log1p")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Cosh(s, x)) }), "Sinh")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Sinh(s, x)) }), "Cosh")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.TanhGrad(s, y, dy) }), "Tanh")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.SigmoidGrad(s, y, dy) }), "Sigmoid")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Cos(s, x)) }), "Sin")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Neg(s, op.Mul(s, dy, op.Sin(s, x))) }), "Cos")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Square(s, op.Reciprocal(s, op.Cos(s, x))))
	}), "Tan")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Rsqrt(s, op.Sub(s, number(s, x, 1), op.Square(s, x))))
	}), "Asin")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Neg(s, op.Mul(s, dy, op.Rsqrt(s, op.Sub(s, number(s, x, 1), op.Square(s, x)))))
	}), "Acos")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Reciprocal(s, op.AddV2(s, number(s, x, 1), op.Square(s, x))))
	}), "Atan")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.Div(s, dy, op.Cosh(s, y)) }), "Asinh")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.Div(s, dy, op.Sinh(s, y)) }), "Acosh")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Reciprocal(s, op.Sub(s, number(s, x, 1), op.Square(s, x))))
	}), "Atanh")
	const twoOverRootPi = 1.1283791670955126
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Mul(s, number(s, x, twoOverRootPi), op.Exp(s, op.Neg(s, op.Square(s, x)))))
	}), "Erf")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Mul(s, number(s, x, -twoOverRootPi), op.Exp(s, op.Neg(s, op.Square(s, x)))))
	}), "Erfc")
	Register(func(c *Call) []Grad {
		to := c.In(0).DType().Base()
		if !to.IsFloating() && !to.IsComplex() {
			return c.None()
		}
		return List(op.Cast(c.S, c.DY(0), to))
	}, "Cast")
	Register(func(c *Call) []Grad { return List(op.ZerosLike(c.S, c.In(0))) }, "Sign")
	NotDifferentiable("Floor", "Ceil", "Round", "Rint", "IsNan", "IsInf", "IsFinite",
		"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual", "FloorDiv", "TruncateDiv",
		"ArgMax", "ArgMin", "All", "Any", "LogicalAnd", "LogicalOr", "LogicalNot", "Range", "LinSpace", "Bucketize", "Invert",
		"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift", "PopulationCount")
}
