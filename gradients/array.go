package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(func(c *Call) []Grad {
		grads := c.None()
		for i := range grads {
			grads[i] = c.Grad(i)
		}
		return grads
	}, "Identity", "IdentityN", "RefIdentity", "Snapshot", "DebugGradientIdentity", "DebugGradientRefIdentity", "EnsureShape")
	Register(func(c *Call) []Grad { return []Grad{c.Grad(0)} }, "PlaceholderWithDefault")
	Register(func(c *Call) []Grad {
		return List(op.CheckNumerics(c.S, c.DY(0), "Not a number (NaN) or infinity (Inf) values detected in gradient."))
	}, "CheckNumerics", "CheckNumericsV2")
	Register(func(c *Call) []Grad {
		grads := c.None()
		grads[0] = Of(op.Reshape(c.S, c.DY(0), op.Shape(c.S, c.In(0))))
		return grads
	}, "Reshape", "ExpandDims", "Squeeze")
	Register(func(c *Call) []Grad {
		return List(op.Transpose(c.S, c.DY(0), op.InvertPermutation(c.S, c.In(1))), op.Output{})
	}, "Transpose")
	Register(func(c *Call) []Grad {
		return List(op.ConjugateTranspose(c.S, c.DY(0), op.InvertPermutation(c.S, c.In(1))), op.Output{})
	}, "ConjugateTranspose")
	Register(func(c *Call) []Grad { return concat(c, 1) }, "Concat")
	Register(func(c *Call) []Grad { return concat(c, 0) }, "ConcatV2")
	Register(func(c *Call) []Grad { return List(op.Output{}, joined(c, c.In(0))) }, "Split")
	Register(func(c *Call) []Grad { return List(joined(c, c.In(2)), op.Output{}, op.Output{}) }, "SplitV")
	Register(func(c *Call) []Grad {
		return List(op.Unpack(c.S, c.DY(0), int64(c.Node.NumInputs()), op.UnpackAxis(int64(c.Node.Attrs.Int("axis"))))...)
	}, "Pack")
	Register(func(c *Call) []Grad {
		return List(op.Pack(c.S, c.allDYs(), op.PackAxis(int64(c.Node.Attrs.Int("axis")))))
	}, "Unpack")
	Register(slice, "Slice")
	Register(stridedSlice, "StridedSlice")
	Register(tile, "Tile")
	Register(func(c *Call) []Grad {
		s := c.S
		rank := op.Rank(s, c.In(0))
		column := op.Slice(s, c.In(1), op.Const(s, []int32{0, 0}), op.Pack(s, []op.Output{rank, op.Const(s, int32(1))}))
		begin := op.Reshape(s, op.Cast(s, column, tensor.Int32), op.Const(s, []int32{-1}))
		grads := c.None()
		grads[0] = Of(op.Slice(s, c.DY(0), begin, op.Shape(s, c.In(0))))
		return grads
	}, "Pad", "PadV2")
	Register(func(c *Call) []Grad {
		s, zero := c.S, op.ZerosLike(c.S, c.DY(0))
		return List(op.Output{}, op.Select(s, c.In(0), c.DY(0), zero), op.Select(s, c.In(0), zero, c.DY(0)))
	}, "Select")
	Register(selectV2, "SelectV2")
	Register(func(c *Call) []Grad {
		s := c.S
		shape := op.Shape(s, c.In(0))
		r, _ := op.BroadcastGradientArgs(s, shape, op.Shape(s, c.Out(0)))
		return List(op.Reshape(s, op.Sum(s, c.DY(0), r), shape), op.Output{})
	}, "BroadcastTo")
	Register(func(c *Call) []Grad { return List(op.Output{}, op.Sum(c.S, c.DY(0), allAxes(c.S, c.DY(0)))) }, "Fill")
	Register(func(c *Call) []Grad {
		c.S.Fail(status.InvalidArgumentf("Gradient explicitly disabled. Reason: %s", c.Node.Attrs.String("message")))
		return c.None()
	}, "PreventGradient")
	NotDifferentiable("Const", "StopGradient", "ZerosLike", "OnesLike", "Shape", "ShapeN", "Size", "Rank", "OneHot", "InvertPermutation",
		"EditDistance", "Placeholder", "PlaceholderV2", "BroadcastGradientArgs", "BroadcastArgs", "ConcatOffset", "Where", "LowerBound", "UpperBound", "UnravelIndex")
}

// allAxes returns the vector 0, 1, … of the dimensions of x.
func allAxes(s *op.Scope, x op.Output) op.Output {
	return op.Range(s, op.Const(s, int32(0)), op.Rank(s, x), op.Const(s, int32(1)))
}

// joined concatenates the gradients of all outputs along an axis.
func joined(c *Call, axis op.Output) op.Output {
	parts := c.allDYs()
	if len(parts) == 1 {
		return parts[0]
	}
	return op.ConcatV2(c.S, parts, axis)
}

// concat splits the gradient into those of the concatenated inputs: the inputs from position lo on,
// without the axis.
func concat(c *Call, lo int) []Grad {
	s, n := c.S, c.Node.NumInputs()-1
	axis := c.In(n * (1 - lo)) // the first or the last input
	axis = op.FloorMod(s, op.Cast(s, axis, tensor.Int32), op.Rank(s, c.In(lo)))
	sizes := op.ShapeN(s, c.Node.Inputs()[lo:lo+n])
	grads := c.None()
	for i, offset := range op.ConcatOffset(s, axis, sizes) {
		grads[lo+i] = Of(op.Slice(s, c.DY(0), offset, sizes[i]))
	}
	return grads
}

// slice pads the gradient with zeros to the shape of the input.
func slice(c *Call) []Grad {
	s := c.S
	begin := c.In(1)
	shape := op.Shape(s, c.In(0), op.ShapeOutType(begin.DType()))
	after := op.Sub(s, op.Sub(s, shape, op.Shape(s, c.Out(0), op.ShapeOutType(begin.DType()))), begin)
	return List(op.Pad(s, c.DY(0), op.Pack(s, []op.Output{begin, after}, op.PackAxis(1))), op.Output{}, op.Output{})
}

func stridedSlice(c *Call) []Grad {
	s, a := c.S, c.Node.Attrs
	shape := op.Shape(s, c.In(0), op.ShapeOutType(c.In(1).DType()))
	dx := op.StridedSliceGrad(s, shape, c.In(1), c.In(2), c.In(3), c.DY(0),
		op.StridedSliceGradBeginMask(int64(a.Int("begin_mask"))), op.StridedSliceGradEndMask(int64(a.Int("end_mask"))),
		op.StridedSliceGradEllipsisMask(int64(a.Int("ellipsis_mask"))), op.StridedSliceGradNewAxisMask(int64(a.Int("new_axis_mask"))),
		op.StridedSliceGradShrinkAxisMask(int64(a.Int("shrink_axis_mask"))))
	return List(dx, op.Output{}, op.Output{}, op.Output{})
}

// tile sums over the copies. It reshapes the gradient to [multiples[0], shape[0], multiples[1], …].
func tile(c *Call) []Grad {
	s := c.S
	shape := op.Shape(s, c.In(0), op.ShapeOutType(c.In(1).DType()))
	split := op.Reshape(s, op.Transpose(s, op.Pack(s, []op.Output{c.In(1), shape}), op.Const(s, []int32{1, 0})), op.Const(s, []int32{-1}))
	axes := op.Range(s, op.Const(s, int32(0)), op.Size(s, split), op.Const(s, int32(2)))
	return List(op.Reshape(s, op.Sum(s, op.Reshape(s, c.DY(0), split), axes), shape), op.Output{})
}

func selectV2(c *Call) []Grad {
	s := c.S
	zero := op.ZerosLike(s, c.DY(0))
	back := func(o, d op.Output) op.Output {
		shape := op.Shape(s, o)
		r, _ := op.BroadcastGradientArgs(s, shape, op.Shape(s, c.Out(0)))
		return op.Reshape(s, op.Sum(s, d, r), shape)
	}
	return List(op.Output{}, back(c.In(1), op.SelectV2(s, c.In(0), c.DY(0), zero)), back(c.In(2), op.SelectV2(s, c.In(0), zero, c.DY(0))))
}
