package gradients

import "github.com/weft-ml/weft/op"

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
	// The value |x-y|² is real, so its gradient is taken from a real number.
	Register(func(c *Call) []Grad {
		s, x, y := c.S, c.In(0), c.In(1)
		d := op.Mul(s, op.Mul(s, number(s, x, 2), c.DY(0)), op.Sub(s, x, y))
		return List(unbroadcast(s, x, y, d, op.Neg(s, d)))
	}, "SquaredDifference")
	Register(binary(extremum(func(s *op.Scope, x, y op.Output) op.Output { return op.GreaterEqual(s, x, y) })), "Maximum")
	Register(binary(extremum(func(s *op.Scope, x, y op.Output) op.Output { return op.LessEqual(s, x, y) })), "Minimum")
	Register(binary(func(s *op.Scope, dz, y, x, _ op.Output) (dy, dx op.Output) {
		g := op.RealDiv(s, dz, op.AddV2(s, op.Square(s, x), op.Square(s, y)))
		return op.Mul(s, x, g), op.Neg(s, op.Mul(s, y, g))
	}), "Atan2")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.Mul(s, op.Xlogy(s, isNotZero(s, x), y), dz), op.Mul(s, op.Xdivy(s, x, y), dz)
	}), "Xlogy")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.Mul(s, op.Xlog1py(s, isNotZero(s, x), y), dz), op.Mul(s, op.Xdivy(s, x, op.AddV2(s, y, number(s, y, 1))), dz)
	}), "Xlog1py")
	Register(binary(func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		return op.Mul(s, op.Xdivy(s, isNotZero(s, x), y), dz), op.Mul(s, op.Xdivy(s, op.Neg(s, x), op.Square(s, y)), dz)
	}), "Xdivy")
	Register(binary(func(s *op.Scope, dz, _, _, _ op.Output) (dx, dy op.Output) { return dz, op.ZerosLike(s, dz) }), "NextAfter")
	Register(clip, "ClipByValue")
}

// powGrad differentiates x^y. Where x is not above zero, its logarithm counts as zero.
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

// extremum passes the gradient to the selected input, and to the first where both are equal.
func extremum(first func(s *op.Scope, x, y op.Output) op.Output) func(s *op.Scope, dz, x, y, z op.Output) (op.Output, op.Output) {
	return func(s *op.Scope, dz, x, y, _ op.Output) (dx, dy op.Output) {
		mask, zero := first(s, x, y), op.ZerosLike(s, dz)
		return op.SelectV2(s, mask, dz, zero), op.SelectV2(s, mask, zero, dz)
	}
}

// isNotZero returns one where x is not zero, and zero elsewhere.
func isNotZero(s *op.Scope, x op.Output) op.Output {
	return op.Cast(s, op.NotEqual(s, x, number(s, x, 0)), x.DType().Base())
}

// clip passes the gradient to the value where it is within the bounds, and to the bound elsewhere.
func clip(c *Call) []Grad {
	s, x, low, high, dy := c.S, c.In(0), c.In(1), c.In(2), c.DY(0)
	zero := op.ZerosLike(s, dy)
	below, above := op.Less(s, x, low), op.Greater(s, x, high)
	dx := op.SelectV2(s, op.LogicalOr(s, below, above), zero, dy)
	_, dLow := unbroadcast(s, x, low, op.Output{}, op.SelectV2(s, below, dy, zero))
	_, dHigh := unbroadcast(s, x, high, op.Output{}, op.SelectV2(s, above, dy, zero))
	return List(dx, dLow, dHigh)
}
