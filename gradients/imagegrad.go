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
	Register(projectionGrad, "ImageProjectiveTransform", "ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
}

// cropAndResizeGrad computes the gradient of the boxes as for bilinear crops, also for
// nearest-neighbor crops, as TensorFlow does.
func cropAndResizeGrad(c *Call) []Grad {
	s, grads := c.S, c.None()
	if t := c.In(0).DType(); t.IsFloating() {
		grads[0] = Of(op.CropAndResizeGradImage(s, c.DY(0), c.In(1), c.In(2), op.Shape(s, c.In(0)), t,
			op.CropAndResizeGradImageMethod(c.Node.Attrs.String("method"))))
	}
	grads[1] = Of(op.CropAndResizeGradBoxes(s, c.DY(0), c.In(0), c.In(1), c.In(2)))
	return grads
}

// projectionGrad applies the inverse transform to the gradient. That approximates the gradient if
// the transform hardly stretches the image. TensorFlow does the same.
func projectionGrad(c *Call) []Grad {
	s := c.S
	flat := op.Reshape(s, c.In(1), op.Const(s, []int32{-1, 8}))
	one := op.Slice(s, op.OnesLike(s, flat), op.Const(s, []int32{0, 0}), op.Const(s, []int32{-1, 1}))
	matrices := op.Reshape(s, op.ConcatV2(s, []op.Output{flat, one}, op.Const(s, int32(1))), op.Const(s, []int32{-1, 3, 3}))
	inverse := op.SplitV(s, op.Reshape(s, op.MatrixInverse(s, matrices), op.Const(s, []int32{-1, 9})),
		op.Const(s, []int32{8, 1}), op.Const(s, int32(1)), 2)
	back := op.RealDiv(s, nth(inverse, 0), nth(inverse, 1))
	size := op.Slice(s, op.Shape(s, c.In(0)), op.Const(s, []int32{1}), op.Const(s, []int32{2}))
	in := []op.Output{c.DY(0), back, size}
	switch c.Node.NumInputs() {
	case 2: // of tf.contrib.image: the result has the size of the image
		in = in[:2]
	case 4:
		in = append(in, op.Const(s, float32(0)))
	}
	return c.first(output(c.like(c.Node.Op.Name, in...), 0))
}
