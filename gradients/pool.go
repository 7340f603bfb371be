package gradients

import "github.com/weft-ml/weft/op"

func init() {
	for _, name := range []string{"AvgPool", "AvgPool3D"} {
		grad := name + "Grad"
		Register(func(c *Call) []Grad { return List(output(c.like(grad, shape(c, c.In(0)), c.DY(0)), 0)) }, name)
		Register(func(c *Call) []Grad { return List(op.Output{}, output(c.like(name, c.DY(0)), 0)) }, grad)
	}
	for _, name := range []string{"MaxPool", "MaxPool3D"} {
		grad, gradGrad := name+"Grad", name+"GradGrad"
		Register(func(c *Call) []Grad { return List(output(c.like(grad, c.In(0), c.Out(0), c.DY(0)), 0)) }, name)
		Register(func(c *Call) []Grad { return maxPoolGradGrad(c, gradGrad) }, grad)
		Register(func(c *Call) []Grad { return maxPoolGradGrad(c, grad) }, gradGrad)
	}
	Register(func(c *Call) []Grad {
		return c.first(output(c.like("MaxPoolGradV2", c.In(0), c.Out(0), c.DY(0), c.In(1), c.In(2)), 0))
	}, "MaxPoolV2")
	Register(func(c *Call) []Grad { return maxPoolGradGrad(c, "MaxPoolGradGradV2") }, "MaxPoolGradV2")
	Register(func(c *Call) []Grad { return maxPoolGradGrad(c, "MaxPoolGradV2") }, "MaxPoolGradGradV2")
	Register(func(c *Call) []Grad {
		return List(output(c.like("MaxPoolGradWithArgmax", c.In(0), c.DY(0), c.Out(1)), 0))
	}, "MaxPoolWithArgmax")
	Register(func(c *Call) []Grad {
		return List(output(c.like("FractionalAvgPoolGrad", op.Shape(c.S, c.In(0), op.ShapeOutType(c.Out(1).DType())), c.DY(0), c.Out(1), c.Out(2)), 0))
	}, "FractionalAvgPool")
	Register(func(c *Call) []Grad {
		return List(output(c.like("FractionalMaxPoolGrad", c.In(0), c.Out(0), c.DY(0), c.Out(1), c.Out(2)), 0))
	}, "FractionalMaxPool")
}

// maxPoolGradGrad is the rule of the gradient of max pooling. It gathers from the positions that
// back scatters to, and the reverse. The positions of the maxima are constant.
func maxPoolGradGrad(c *Call, back string) []Grad {
	args := append([]op.Output{c.In(0), c.In(1), c.DY(0)}, c.Node.Inputs()[3:]...)
	grads := c.None()
	grads[0], grads[1] = Of(op.ZerosLike(c.S, c.In(0))), Of(op.ZerosLike(c.S, c.In(1)))
	grads[2] = Of(output(c.like(back, args...), 0))
	return grads
}
