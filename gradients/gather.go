package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(gatherRows, "Gather")
	Register(func(c *Call) []Grad {
		if axis, ok := constantInt(c.In(2)); ok && axis == 0 {
			return gatherRows(c)
		}
		return List(gatherAlong(c), op.Output{}, op.Output{})
	}, "GatherV2")
	Register(func(c *Call) []Grad {
		s := c.S
		shape := op.Shape(s, c.In(0), op.ShapeOutType(c.In(1).DType()))
		return List(op.ScatterNd(s, c.In(1), c.DY(0), shape), op.Output{})
	}, "GatherNd")
	Register(func(c *Call) []Grad {
		s := c.S
		shape := op.VariableShape(s.ColocateWith(c.In(0).Node), c.In(0), op.VariableShapeOutType(c.In(1).DType()))
		return List(op.ScatterNd(s, c.In(1), c.DY(0), shape), op.Output{})
	}, "ResourceGatherNd")
	Register(func(c *Call) []Grad {
		return []Grad{rows(c, op.VariableShape(c.S.ColocateWith(c.In(0).Node), c.In(0))), {}}
	}, "ResourceGather")
}

// gatherRows returns a sparse gradient, because embeddings are gathers of rows. The input may be
// large and on another task, so its shape is computed on its device.
func gatherRows(c *Call) []Grad {
	grads := c.None()
	grads[0] = rows(c, op.Shape(c.S.ColocateWith(c.In(0).Node), c.In(0)))
	return grads
}

// rows returns the gradient of a gather of rows from a tensor of the given shape.
func rows(c *Call, shape op.Output) Grad {
	s := c.S
	count := vector(s, op.Size(s, c.In(1)))
	row := op.StridedSlice(s, shape, op.Const(s, []int32{1}), op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.StridedSliceEndMask(1))
	values := op.Reshape(s, c.DY(0), op.ConcatV2(s, []op.Output{count, row}, op.Const(s, int32(0))))
	return Grad{Slices: &IndexedSlices{Values: values, Indices: op.Reshape(s, c.In(1), count), Shape: shape}}
}

// gatherAlong scatters the gradient of a gather along any axis, within each batch. The axis is
// moved behind the batch dimensions, which are flattened into one, and the rows of batch i get
// indices that start at i times the number of rows.
func gatherAlong(c *Call) op.Output {
	s, indices := c.S, c.In(1)
	zero, one, minusOne := op.Const(s, int32(0)), op.Const(s, int32(1)), op.Const(s, []int32{-1})
	join := func(parts ...op.Output) op.Output { return op.ConcatV2(s, parts, zero) }
	shape := op.Shape(s.ColocateWith(c.In(0).Node), c.In(0))
	rank := op.Size(s, shape)
	axis := op.FloorMod(s, op.Cast(s, c.In(2), tensor.Int32), rank)
	batch := op.Const(s, int32(c.Node.Attrs.Int("batch_dims")))
	if c.Node.Attrs.Int("batch_dims") < 0 {
		batch = op.AddV2(s, batch, op.Rank(s, indices))
	}

	before := op.Slice(s, shape, op.Const(s, []int32{0}), vector(s, axis))
	after := op.Slice(s, shape, vector(s, op.AddV2(s, axis, one)), minusOne)
	values := op.Reshape(s, c.DY(0), join(before, minusOne, after))
	front := join(op.Range(s, zero, batch, one), vector(s, axis), op.Range(s, batch, axis, one),
		op.Range(s, op.AddV2(s, axis, one), rank, one))
	// the shape of the input with its dimensions reordered
	moved := op.Gather(s, shape, front)
	batches := op.Slice(s, moved, op.Const(s, []int32{0}), vector(s, batch))
	inner := op.Slice(s, moved, vector(s, op.AddV2(s, batch, one)), minusOne)
	size, count := op.Gather(s, shape, axis), op.Prod(s, batches, zero)

	offsets := op.Mul(s, op.Range(s, zero, count, one), size)
	numbered := op.AddV2(s, op.Reshape(s, op.Cast(s, indices, tensor.Int64), join(vector(s, count), minusOne)),
		op.Cast(s, op.ExpandDims(s, offsets, one), tensor.Int64))
	values = op.Reshape(s, op.Transpose(s, values, front), join(minusOne, inner))
	sum := op.UnsortedSegmentSum(s, values, op.Reshape(s, numbered, minusOne), op.Mul(s, count, size))
	return op.Transpose(s, op.Reshape(s, sum, moved), op.InvertPermutation(s, front))
}

// vector returns a scalar as a vector of one element.
func vector(s *op.Scope, scalar op.Output) op.Output {
	return op.Reshape(s, scalar, op.Const(s, []int32{1}))
}

// constantInt returns the value of an output if it is an integer constant.
func constantInt(o op.Output) (int64, bool) {
	if o.Node.Op.Name != "Const" {
		return 0, false
	}
	switch v := o.Node.Attrs.Tensor("value"); v.DType() {
	case tensor.Int32:
		return int64(tensor.Value[int32](v)), true
	case tensor.Int64:
		return tensor.Value[int64](v), true
	default:
		return 0, false
	}
}
