package gradients

import "github.com/weft-ml/weft/op"

// Softmax and losses.
func init() {
	Register(func(c *Call) []Grad {
		s, y, dy := c.S, c.Out(0), c.DY(0)
		total := op.Sum(s, op.Mul(s, dy, y), op.Const(s, []int32{-1}), op.SumKeepDims(true))
		return List(op.Mul(s, op.Sub(s, dy, total), y))
	}, "Softmax")
	Register(func(c *Call) []Grad {
		s, dy := c.S, c.DY(0)
		total := op.Sum(s, dy, op.Const(s, []int32{-1}), op.SumKeepDims(true))
		return List(op.Sub(s, dy, op.Mul(s, total, op.Exp(s, c.Out(0)))))
	}, "LogSoftmax")
	Register(func(c *Call) []Grad {
		dLogits := crossEntropyLogits(c)
		dLabels := op.Mul(c.S, lastDim(c.S, c.DY(0)), op.Neg(c.S, op.LogSoftmax(c.S, c.In(0))))
		return List(dLogits, dLabels)
	}, "SoftmaxCrossEntropyWithLogits")
	Register(func(c *Call) []Grad { return c.first(crossEntropyLogits(c)) }, "SparseSoftmaxCrossEntropyWithLogits")
	Register(func(c *Call) []Grad { return List(op.Mul(c.S, c.In(0), c.DY(0))) }, "L2Loss")
	NotDifferentiable("InTopK", "InTopKV2")
}

// crossEntropyLogits uses the gradient that the operation computed together with the loss. If that
// gradient is differentiated itself, its derivative is that of softmax.
func crossEntropyLogits(c *Call) op.Output {
	s := c.S
	dLogits := op.Mul(s, lastDim(s, c.DY(0)), c.Out(1))
	second := c.Grad(1)
	if second.IsNone() {
		return dLogits
	}
	p, g := op.Softmax(s, c.In(0)), Densify(s, second)
	inner := op.Sum(s, op.Mul(s, g, p), op.Const(s, []int32{-1}), op.SumKeepDims(true))
	return op.AddV2(s, dLogits, op.Mul(s, op.Sub(s, g, inner), p))
}

// lastDim returns x with an additional last dimension of size one.
func lastDim(s *op.Scope, x op.Output) op.Output { return op.ExpandDims(s, x, op.Const(s, int32(-1))) }
