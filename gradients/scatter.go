package gradients

import "github.com/weft-ml/weft/op"

// Values that are written to positions of a tensor.
func init() {
	Register(func(c *Call) []Grad {
		return List(op.Output{}, op.GatherNd(c.S, c.DY(0), c.In(0)), op.Output{})
	}, "ScatterNd")
	Register(func(c *Call) []Grad {
		return List(c.DY(0), op.Output{}, op.GatherNd(c.S, c.DY(0), c.In(1)))
	}, "TensorScatterAdd", "ScatterNdNonAliasingAdd")
	Register(func(c *Call) []Grad {
		return List(c.DY(0), op.Output{}, op.Neg(c.S, op.GatherNd(c.S, c.DY(0), c.In(1))))
	}, "TensorScatterSub")
	Register(func(c *Call) []Grad {
		s, at := c.S, c.In(1)
		updates := op.GatherNd(s, c.DY(0), at)
		return List(op.TensorScatterUpdate(s, c.DY(0), at, op.ZerosLike(s, updates)), op.Output{}, updates)
	}, "TensorScatterUpdate")
	Register(tensorScatterExtreme, "TensorScatterMax", "TensorScatterMin")
	Register(tensorStridedSliceUpdate, "TensorStridedSliceUpdate")
	Register(func(c *Call) []Grad {
		grads := c.None()
		grads[4] = Of(output(c.like("StridedSlice", c.DY(0), c.In(1), c.In(2), c.In(3)), 0))
		return grads
	}, "StridedSliceGrad")
}

// tensorScatterExtreme distributes the gradient over all values that are equal to the extreme.
func tensorScatterExtreme(c *Call) []Grad {
	s, x, at, updates, y, dy := c.S, c.In(0), c.In(1), c.In(2), c.Out(0), c.DY(0)
	isX := op.Cast(s, op.Equal(s, x, y), dy.DType())
	isUpdate := op.Cast(s, op.Equal(s, updates, op.GatherNd(s, y, at)), dy.DType())
	count := op.AddV2(s, isX, op.ScatterNd(s, at, isUpdate, op.Shape(s, x, op.ShapeOutType(at.DType()))))
	share := op.RealDiv(s, dy, count)
	return List(op.Mul(s, share, isX), op.Output{}, op.Mul(s, op.GatherNd(s, share, at), isUpdate))
}

func tensorStridedSliceUpdate(c *Call) []Grad {
	s, begin, end, strides, value := c.S, c.In(1), c.In(2), c.In(3), c.In(4)
	part := output(c.like("StridedSlice", c.DY(0), begin, end, strides), 0)
	grads := c.None()
	grads[0] = Of(output(c.like("TensorStridedSliceUpdate", c.DY(0), begin, end, strides, op.ZerosLike(s, part)), 0))
	_, dValue := unbroadcast(s, part, value, op.Output{}, part)
	grads[4] = Of(dValue)
	return grads
}
