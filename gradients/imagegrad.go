package gradients

import "github.com/weft-ml/weft/op"

func init() {
	Register(func(c *Call) []Grad { return c.first(output(c.like("ResizeBilinearGrad", c.DY(0), c.In(0)), 0)) }, "ResizeBilinear")
	Register(func(c *Call) []Grad { return c.first(output(c.like("ResizeBicubicGrad", c.DY(0), c.In(0)), 0)) }, "ResizeBicubic")
	Register(func(c *Call) []Grad {
		size := op.Slice(c.S, op.Shape(c.S, c.In(0)), op.Const(c.S, []int32{1}), op.Const(c.S, []int32{2}))
		return c.first(output(c.like("ResizeNearestNeighborGrad", c.DY(0), size), 0))
	}, "ResizeNearestNeighbor")
	Register(func(c *Call) []Grad {
		return c.first(output(c.like("ScaleAndTranslateGrad", c.DY(0), c.In(0), c.In(2), c.In(3)), 0))
	}, "ScaleAndTranslate")
	Register(cropAndResizeGrad, "CropAndResize")
}

// cropAndResizeGrad gives no gradient of the boxes for crops by the nearest neighbor.
func cropAndResizeGrad(c *Call) []Grad {
	s, grads := c.S, c.None()
	method := c.Node.Attrs.String("method")
	grads[0] = Of(op.CropAndResizeGradImage(s, c.DY(0), c.In(1), c.In(2), op.Shape(s, c.In(0)), c.In(0).DType(),
		op.CropAndResizeGradImageMethod(method)))
	if method == "bilinear" {
		grads[1] = Of(op.CropAndResizeGradBoxes(s, c.DY(0), c.In(0), c.In(1), c.In(2)))
	}
	return grads
}
