package gradients

import "github.com/weft-ml/weft/op"

func init() {
	Register(func(c *Call) []Grad { return blockLSTM(c, "BlockLSTMGrad") }, "BlockLSTM")
	Register(func(c *Call) []Grad { return blockLSTM(c, "BlockLSTMGradV2") }, "BlockLSTMV2")
	Register(lstmCell, "LSTMBlockCell")
	Register(gruCell, "GRUBlockCell")
}

// blockLSTM uses only the gradients of the cells and of the outputs. Gradients of the gates are
// ignored.
func blockLSTM(c *Call, grad string) []Grad {
	var args []op.Output
	for i := range c.Node.NumInputs() {
		args = append(args, c.In(i))
	}
	for i := range c.Node.OutTypes {
		args = append(args, c.Out(i))
	}
	n := c.like(grad, append(args, c.DY(1), c.DY(6))...)
	grads := c.None()
	for i := 1; i < len(grads); i++ {
		grads[i] = Of(output(n, i-1))
	}
	return grads
}

// lstmCell, like blockLSTM, uses only the gradients of the cells and of the outputs.
func lstmCell(c *Call) []Grad {
	s := c.S
	x, hPrev, w := c.In(0), c.In(2), c.In(3)
	n := c.like("LSTMBlockCellGrad", x, c.In(1), hPrev, w, c.In(4), c.In(5), c.In(6), c.In(7),
		c.Out(0), c.Out(1), c.Out(2), c.Out(3), c.Out(4), c.Out(5), c.DY(1), c.DY(6))
	gates := output(n, 1)
	dx, dh := apart(s, op.MatMul(s, gates, w, op.MatMulTransposeB(true)), x, hPrev)
	dw := op.MatMul(s, beside(s, x, hPrev), gates, op.MatMulTransposeA(true))
	return List(dx, output(n, 0), dh, dw, output(n, 2), output(n, 3), output(n, 4), op.BiasAddGrad(s, gates))
}

// gruCell uses only the gradient of the outputs.
func gruCell(c *Call) []Grad {
	s := c.S
	x, hPrev, r := c.In(0), c.In(1), c.Out(0)
	n := c.like("GRUBlockCellGrad", x, hPrev, c.In(2), c.In(3), c.In(4), c.In(5), r, c.Out(1), c.Out(2), c.DY(3))
	dc, dru := output(n, 2), output(n, 3)
	dwRU := op.MatMul(s, beside(s, x, hPrev), dru, op.MatMulTransposeA(true))
	dwC := op.MatMul(s, beside(s, x, op.Mul(s, hPrev, r)), dc, op.MatMulTransposeA(true))
	return List(output(n, 0), output(n, 1), dwRU, dwC, op.BiasAddGrad(s, dru), op.BiasAddGrad(s, dc))
}

// beside concatenates x and h along the columns.
func beside(s *op.Scope, x, h op.Output) op.Output {
	return op.ConcatV2(s, []op.Output{x, h}, op.Const(s, int32(1)))
}

// apart splits a matrix like that of beside into its parts.
func apart(s *op.Scope, both, x, h op.Output) (dx, dh op.Output) {
	size := op.Shape(s, x)
	dx = op.Slice(s, both, op.Const(s, []int32{0, 0}), size)
	return dx, op.Slice(s, both, op.Mul(s, size, op.Const(s, []int32{0, 1})), op.Shape(s, h))
}
