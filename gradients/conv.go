package gradients

import "github.com/weft-ml/weft/op"

// convolution names the operations of one kind of convolution. forward takes (input, filter),
// inputGrad (input sizes, filter, dy), filterGrad (input, filter sizes, dy).
type convolution struct{ forward, inputGrad, filterGrad string }

// Each of the three operations is linear in two of its arguments, so its gradients are the other
// two operations.
func init() {
	for _, k := range []convolution{
		{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
		{"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"},
		{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"},
	} {
		Register(func(c *Call) []Grad {
			x, f := c.In(0), c.In(1)
			return List(k.add(c, k.inputGrad, shape(c, x), f, c.DY(0)), k.add(c, k.filterGrad, x, shape(c, f), c.DY(0)))
		}, k.forward)
		Register(func(c *Call) []Grad {
			f, dy, d := c.In(1), c.In(2), c.DY(0)
			return List(op.Output{}, k.add(c, k.filterGrad, d, shape(c, f), dy), k.add(c, k.forward, d, f))
		}, k.inputGrad)
		Register(func(c *Call) []Grad {
			x, dy, d := c.In(0), c.In(2), c.DY(0)
			return List(k.add(c, k.inputGrad, shape(c, x), d, dy), op.Output{}, k.add(c, k.forward, x, d))
		}, k.filterGrad)
	}
	Register(dilation, "Dilation2D")
}

func (convolution) add(c *Call, name string, args ...op.Output) op.Output {
	return output(c.like(name, args...), 0)
}

// shape returns the shape of x.
func shape(c *Call, x op.Output) op.Output { return op.Shape(c.S, x) }

func dilation(c *Call) []Grad {
	return List(output(c.like("Dilation2DBackpropInput", c.In(0), c.In(1), c.DY(0)), 0),
		output(c.like("Dilation2DBackpropFilter", c.In(0), c.In(1), c.DY(0)), 0))
}
