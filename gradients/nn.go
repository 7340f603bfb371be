package gradients

import "github.com/weft-ml/weft/op"

// Activations and biases, and the gradients of their gradients.
func init() {
	for _, name := range []string{"Relu", "Relu6", "Elu", "Selu"} { // functions of the output
		Register(func(c *Call) []Grad { return c.first(output(c.like(name+"Grad", c.DY(0), c.Out(0)), 0)) }, name)
	}
	for _, name := range []string{"LeakyRelu", "Softplus", "Softsign"} { // functions of the input
		Register(func(c *Call) []Grad { return c.first(output(c.like(name+"Grad", c.DY(0), c.In(0)), 0)) }, name)
	}
	// linear in dy, and piecewise constant in x
	for _, name := range []string{"ReluGrad", "Relu6Grad", "LeakyReluGrad"} {
		Register(func(c *Call) []Grad {
			return List(output(c.like(name, c.DY(0), c.In(1)), 0), op.ZerosLike(c.S, c.In(1)))
		}, name)
	}
	// linear in dy, and in y where y is below zero
	for _, name := range []string{"EluGrad", "SeluGrad"} {
		Register(func(c *Call) []Grad {
			s, d, dy, y := c.S, c.DY(0), c.In(0), c.In(1)
			below := op.SelectV2(s, op.Less(s, y, number(s, y, 0)), op.Mul(s, d, dy), op.ZerosLike(s, y))
			return List(output(c.like(name, d, y), 0), below)
		}, name)
	}
	Register(func(c *Call) []Grad {
		s, d, dy, x := c.S, c.DY(0), c.In(0), c.In(1)
		halves := op.AddV2(s, op.AddV2(s, op.Exp(s, op.Neg(s, x)), number(s, x, 2)), op.Exp(s, x))
		return List(op.SoftplusGrad(s, d, x), op.RealDiv(s, op.Mul(s, d, dy), halves))
	}, "SoftplusGrad")
	Register(func(c *Call) []Grad {
		return List(c.DY(0), output(c.like("BiasAddGrad", c.DY(0)), 0))
	}, "BiasAdd", "BiasAddV1")
	Register(biasAddGradGrad, "BiasAddGrad")
}

// biasAddGradGrad broadcasts the gradient of a bias to the shape of the biased value.
func biasAddGradGrad(c *Call) []Grad {
	s, d := c.S, c.DY(0)
	shape := op.Shape(s, c.In(0))
	if c.Node.Attrs.String("data_format") == "NCHW" {
		one, zero := op.Const(s, int32(1)), op.Const(s, int32(0))
		after := op.Fill(s, vector(s, op.Sub(s, op.Rank(s, c.In(0)), op.Const(s, int32(2)))), one)
		d = op.Reshape(s, d, op.ConcatV2(s, []op.Output{op.Const(s, []int32{-1}), after}, zero))
	}
	return c.first(op.BroadcastTo(s, d, shape))
}
