package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// conj returns the conjugate of a complex value: gradients of complex functions are taken by it.
func conj(s *op.Scope, x op.Output) op.Output {
	if x.DType().Base().IsComplex() {
		return op.Conj(s, x)
	}
	return x
}

// number returns a scalar constant of the type of x.
func number(s *op.Scope, x op.Output, v float64) op.Output {
	return op.ConstOf(s, x.DType().Base(), v)
}

// unary makes the rule of a function of one input: derivative returns dy times the derivative, given dy, x and y.
func unary(derivative func(s *op.Scope, dy, x, y op.Output) op.Output) Rule {
	return func(c *Call) []Grad {
		return List(derivative(c.S, c.DY(0), conj(c.S, c.In(0)), conj(c.S, c.Out(0))))
	}
}

// binary makes the rule of a function of two inputs that broadcast against each other: partial returns the gradients
// before they are summed over the dimensions that were broadcast.
func binary(partial func(s *op.Scope, dz, x, y, z op.Output) (dx, dy op.Output)) Rule {
	return func(c *Call) []Grad {
		s := c.S
		dx, dy := partial(s, c.DY(0), conj(s, c.In(0)), conj(s, c.In(1)), conj(s, c.Out(0)))
		return List(unbroadcast(s, c.In(0), c.In(1), dx, dy))
	}
}

// unbroadcast sums gradients over the dimensions in which x and y were broadcast against each other.
func unbroadcast(s *op.Scope, x, y, dx, dy op.Output) (sx, sy op.Output) {
	shapeX, shapeY := op.Shape(s, x), op.Shape(s, y)
	rx, ry := op.BroadcastGradientArgs(s, shapeX, shapeY)
	return op.Reshape(s, op.Sum(s, dx, rx), shapeX), op.Reshape(s, op.Sum(s, dy, ry), shapeY)
}

func init() {
	Register(unary(func(s *op.Scope, dy, _, _ op.Output) op.Output { return op.Neg(s, dy) }), "Neg")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output { return op.Mul(s, dy, op.Sign(s, x)) }), "Abs")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.ReciprocalGrad(s, y, dy) }), "Reciprocal", "Inv")
	Register(unary(func(s *op.Scope, dy, x, _ op.Output) op.Output {
		return op.Mul(s, dy, op.Mul(s, number(s, x, 2), x))
	}), "Square")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.SqrtGrad(s, y, dy) }), "Sqrt")
	Register(unary(func(s *op.Scope, dy, _, y op.Output) op.Output { return op.RsqrtGrad(s, y, dy) }), "Rsqrt")
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
	NotDifferentiable("Sign", "Floor", "Ceil", "Round", "Rint", "IsNan", "IsInf", "IsFinite",
		"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual", "FloorDiv", "TruncateDiv",
		"ArgMax", "ArgMin", "All", "Any", "LogicalAnd", "LogicalOr", "LogicalNot", "Range", "LinSpace")
}

func init() {
	Register(binary(func(_ *op.Scope, dz, _, _, _ op.Output) (dx, dy op.Output) { return dz, dz }), "Add", "AddV2")
	Register(binary(func(s *op.Scope, dz, _, _, _ op.Output) (dx, dy op.Output) { return dz, op.Neg(s, dz) }), "Sub")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.Mul(s, dz, y), op.Mul(s, x, dz)
	}), "Mul")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.MulNoNan(s, dz, y), op.MulNoNan(s, x, dz)
	}), "MulNoNan")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.RealDiv(s, dz, y), op.Mul(s, dz, op.RealDiv(s, op.RealDiv(s, op.Neg(s, x), y), y))
	}), "RealDiv", "Div")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.DivNoNan(s, dz, y), op.Mul(s, dz, op.DivNoNan(s, op.DivNoNan(s, op.Neg(s, x), y), y))
	}), "DivNoNan")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return dz, op.Mul(s, dz, op.Neg(s, op.FloorDiv(s, x, y)))
	}), "FloorMod")
	Register(binary(powGrad), "Pow")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		d := op.Mul(s, op.Mul(s, number(s, x, 2), dz), op.Sub(s, x, y))
		return d, op.Neg(s, d)
	}), "SquaredDifference")
	Register(binary(extremum(func(s *op.Scope, x, y op.Output) op.Output { return op.GreaterEqual(s, x, y) })), "Maximum")
	Register(binary(extremum(func(s *op.Scope, x, y op.Output) op.Output { return op.LessEqual(s, x, y) })), "Minimum")
	Register(binary(func(s *op.Scope, dz, y, x, _ op.Output) (dy, dx op.Output) {
		g := op.RealDiv(s, dz, op.AddV2(s, op.Square(s, x), op.Square(s, y)))
		return op.Mul(s, x, g), op.Neg(s, op.Mul(s, y, g))
	}), "Atan2")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		notZero := op.Cast(s, op.NotEqual(s, x, number(s, x, 0)), x.DType().Base())
		return op.Mul(s, op.Xlogy(s, notZero, y), dz), op.Mul(s, op.Xdivy(s, x, y), dz)
	}), "Xlogy")
}

// powGrad differentiates x^y; where x is not above zero the logarithm is taken as zero.
func powGrad(s *op.Scope, dz, x, y, z op.Output) (dx, dy op.Output) {
	one := number(s, y, 1)
	dx = op.Mul(s, dz, op.Mul(s, y, op.Pow(s, x, op.Sub(s, y, one))))
	zero := op.ZerosLike(s, x)
	mask := op.NotEqual(s, x, zero)
	if !x.DType().Base().IsComplex() {
		mask = op.Greater(s, x, zero)
	}
	safe := op.SelectV2(s, mask, x, op.OnesLike(s, x))
	logX := op.SelectV2(s, mask, op.Log(s, safe), zero)
	return dx, op.Mul(s, dz, op.Mul(s, z, logX))
}

// extremum gives the gradient to the input that was selected, to the first where both are equal.
func extremum(first func(s *op.Scope, x, y op.Output) op.Output) func(s *op.Scope, dz, x, y, z op.Output) (op.Output, op.Output) {
	return func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		mask, zero := first(s, x, y), op.ZerosLike(s, dz)
		return op.SelectV2(s, mask, dz, zero), op.SelectV2(s, mask, zero, dz)
	}
}

func init() {
	Register(matMul, "MatMul")
	Register(batchMatMul, "BatchMatMul", "BatchMatMulV2")
	Register(func(c *Call) []Grad {
		grads := c.None()
		for i := range grads {
			grads[i] = c.Grad(0)
		}
		return grads
	}, "AddN")
	Register(func(c *Call) []Grad {
		to := c.In(0).DType().Base()
		if !to.IsFloating() && !to.IsComplex() {
			return c.None()
		}
		return List(op.Cast(c.S, c.DY(0), to))
	}, "Cast")
	Register(sumGrad, "Sum")
	Register(meanGrad, "Mean")
	Register(extremeReduction, "Max", "Min")
	Register(func(c *Call) []Grad {
		return List(op.Cumsum(c.S, c.DY(0), c.In(1), op.CumsumExclusive(c.Node.Attrs.Bool("exclusive")),
			op.CumsumReverse(!c.Node.Attrs.Bool("reverse"))), op.Output{})
	}, "Cumsum")
	Register(func(c *Call) []Grad {
		return []Grad{Of(op.Gather(c.S, c.DY(0), c.In(1))), {}}
	}, "SegmentSum")
}

func matMul(c *Call) []Grad {
	s, a, b, dy := c.S, conj(c.S, c.In(0)), conj(c.S, c.In(1)), c.DY(0)
	mul := func(x, y op.Output, tx, ty bool) op.Output {
		return op.MatMul(s, x, y, op.MatMulTransposeA(tx), op.MatMulTransposeB(ty))
	}
	ta, tb := c.Node.Attrs.Bool("transpose_a"), c.Node.Attrs.Bool("transpose_b")
	switch {
	case !ta && !tb:
		return List(mul(dy, b, false, true), mul(a, dy, true, false))
	case !ta && tb:
		return List(mul(dy, b, false, false), mul(dy, a, true, false))
	case ta && !tb:
		return List(mul(b, dy, false, true), mul(a, dy, false, false))
	default:
		return List(mul(b, dy, true, true), mul(dy, a, true, true))
	}
}

func batchMatMul(c *Call) []Grad {
	s, x, y, dz := c.S, c.In(0), c.In(1), c.DY(0)
	mul := func(a, b op.Output, adjA, adjB bool) op.Output {
		return op.BatchMatMulV2(s, a, b, op.BatchMatMulV2AdjX(adjA), op.BatchMatMulV2AdjY(adjB))
	}
	var dx, dy op.Output
	switch adjX, adjY := c.Node.Attrs.Bool("adj_x"), c.Node.Attrs.Bool("adj_y"); {
	case !adjX && !adjY:
		dx, dy = mul(dz, y, false, true), mul(x, dz, true, false)
	case !adjX && adjY:
		dx, dy = mul(dz, y, false, false), mul(dz, x, true, false)
	case adjX && !adjY:
		dx, dy = mul(y, dz, false, true), mul(x, dz, false, false)
	default:
		dx, dy = mul(y, dz, true, true), mul(dz, x, true, true)
	}
	// Only the dimensions before the last two are broadcast against each other.
	batch := func(o op.Output) op.Output {
		return op.StridedSlice(s, op.Shape(s, o), op.Const(s, []int32{0}), op.Const(s, []int32{-2}), op.Const(s, []int32{1}),
			op.StridedSliceBeginMask(1))
	}
	rx, ry := op.BroadcastGradientArgs(s, batch(x), batch(y))
	return List(op.Reshape(s, op.Sum(s, dx, rx), op.Shape(s, x)), op.Reshape(s, op.Sum(s, dy, ry), op.Shape(s, y)))
}

// reducedShape returns the shape of the input with ones in the dimensions that were reduced.
func reducedShape(c *Call) op.Output {
	s := c.S
	shape := op.Shape(s, c.In(0))
	axes := op.Cast(s, c.In(1), tensor.Int32)
	rank := op.Size(s, shape)
	axes = op.FloorMod(s, op.AddV2(s, axes, rank), rank)
	zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
	return op.DynamicStitch(s, []op.Output{op.Range(s, zero, rank, one), axes},
		[]op.Output{shape, op.Fill(s, op.Shape(s, axes), one)})
}

func sumGrad(c *Call) []Grad {
	s := c.S
	dy := op.Reshape(s, c.DY(0), reducedShape(c))
	return List(op.BroadcastTo(s, dy, op.Shape(s, c.In(0))), op.Output{})
}

func meanGrad(c *Call) []Grad {
	s := c.S
	sum := sumGrad(c)[0].Dense
	elements := func(o op.Output) op.Output { return op.Size(s, o) }
	factor := op.FloorDiv(s, elements(c.In(0)), op.Maximum(s, elements(c.Out(0)), op.Const(s, int32(1))))
	return List(op.RealDiv(s, sum, op.Cast(s, factor, sum.DType())), op.Output{})
}

// extremeReduction shares the gradient between the elements that are equal to the extreme.
func extremeReduction(c *Call) []Grad {
	s := c.S
	shape := reducedShape(c)
	y, dy := op.Reshape(s, c.Out(0), shape), op.Reshape(s, c.DY(0), shape)
	mask := op.Cast(s, op.Equal(s, y, c.In(0)), dy.DType())
	count := op.Reshape(s, op.Sum(s, mask, c.In(1)), shape)
	return List(op.Mul(s, op.RealDiv(s, mask, count), dy), op.Output{})
}
