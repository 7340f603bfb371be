package gradients

import "github.com/weft-ml/weft/op"

// The derivative of rounding is zero or undefined, so gradients pass straight through it, within
// the representable range.
func init() {
	Register(func(c *Call) []Grad {
		return c.first(output(c.like("FakeQuantWithMinMaxArgsGradient", c.DY(0), c.In(0)), 0))
	}, "FakeQuantWithMinMaxArgs")
	for forward, backward := range map[string]string{
		"FakeQuantWithMinMaxVars":           "FakeQuantWithMinMaxVarsGradient",
		"FakeQuantWithMinMaxVarsPerChannel": "FakeQuantWithMinMaxVarsPerChannelGradient",
		"QuantizeAndDequantizeV4":           "QuantizeAndDequantizeV4Grad",
	} {
		Register(func(c *Call) []Grad {
			n := c.like(backward, c.DY(0), c.In(0), c.In(1), c.In(2))
			return List(output(n, 0), output(n, 1), output(n, 2))
		}, forward)
	}
	Register(func(c *Call) []Grad { return c.first(c.DY(0)) }, "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
		"Print")
	Register(func(c *Call) []Grad {
		// The operation computes its gradient itself: [time, batch, class] for losses of shape
		// [batch].
		s := c.S
		return c.first(op.Mul(s, op.ExpandDims(s, c.DY(0), op.Const(s, int32(-1))), c.Out(1)))
	}, "CTCLoss")
}
