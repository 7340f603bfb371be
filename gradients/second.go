package gradients

import "github.com/weft-ml/weft/op"

// Gradients of the gradients of elementwise functions. These operations take the output y of the
// function, or its input, and the gradient dy.
func init() {
	Register(second(func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output) {
		cy, cd := conj(s, y), conj(s, d)
		return op.Mul(s, op.Mul(s, number(s, d, -2), cd), op.Mul(s, dy, cy)), op.ReciprocalGrad(s, cy, d)
	}), "ReciprocalGrad", "InvGrad")
	Register(second(func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output) {
		half := op.RealDiv(s, op.Mul(s, number(s, d, 0.5), d), y)
		return op.Neg(s, op.RealDiv(s, op.Mul(s, conj(s, half), dy), conj(s, y))), half
	}), "SqrtGrad")
	Register(second(func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output) {
		cy, cd := conj(s, y), conj(s, d)
		return op.Mul(s, op.Mul(s, number(s, d, -1.5), cd), op.Mul(s, dy, op.Square(s, cy))), op.RsqrtGrad(s, cy, d)
	}), "RsqrtGrad")
	Register(second(func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output) {
		cy, cdy := conj(s, y), conj(s, dy)
		return op.Mul(s, op.Mul(s, number(s, d, -2), d), op.Mul(s, cdy, cy)), op.TanhGrad(s, cy, d)
	}), "TanhGrad")
	Register(second(func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output) {
		cy, both := conj(s, y), op.Mul(s, d, conj(s, dy))
		return op.Sub(s, both, op.Mul(s, op.Mul(s, number(s, d, 2), both), cy)), op.SigmoidGrad(s, cy, d)
	}), "SigmoidGrad")
}

// second returns the rule of the gradient of a function. partial returns the gradients of y and dy.
// The operations for reciprocals and roots conjugate y themselves, the others do not.
func second(partial func(s *op.Scope, d, y, dy op.Output) (gy, gdy op.Output)) Rule {
	return func(c *Call) []Grad { return List(partial(c.S, c.DY(0), c.In(0), c.In(1))) }
}

func args(outs ...op.Output) []op.Arg {
	list := make([]op.Arg, len(outs))
	for i, o := range outs {
		list[i] = op.One(o)
	}
	return list
}
