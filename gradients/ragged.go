package gradients

import (
	"slices"

	"github.com/weft-ml/weft/op"
)

// The gradient of a ragged tensor is that of its flat values. Splits have none.
func init() {
	Register(raggedGatherGrad, "RaggedGather")
	Register(func(c *Call) []Grad {
		grads := c.None()
		last := len(grads) - 1
		grads[last] = Of(op.Reshape(c.S, c.DY(1), op.Shape(c.S, c.In(last))))
		return grads
	}, "RaggedTensorToSparse")
	Register(raggedToTensorGrad, "RaggedTensorToTensor")
	Register(func(c *Call) []Grad {
		grads := c.None()
		last := len(grads) - 1
		splits := op.Const(c.S, int64(0))
		if last > 0 {
			splits = c.In(0)
		}
		grads[last] = Of(op.RaggedTensorToVariantGradient(c.S, c.DY(0), splits, op.Shape(c.S, c.In(last)), c.In(last).DType().Base()))
		return grads
	}, "RaggedTensorToVariant")
	Register(func(c *Call) []Grad {
		last := len(c.Node.OutTypes) - 1
		splits := op.Outputs(c.Node, 0, last)
		return List(op.RaggedTensorToVariant(c.S, splits, c.DY(last), isBatch(c)))
	}, "RaggedTensorFromVariant")
	Register(func(c *Call) []Grad {
		values, rest := op.RaggedFillEmptyRowsGrad(c.S, c.Out(3), c.DY(1))
		return List(op.Output{}, values, op.Output{}, rest)
	}, "RaggedFillEmptyRows")
}

// isBatch reports whether RaggedTensorFromVariant combines several tensors: whether its input is
// not a scalar.
func isBatch(c *Call) bool {
	if shape := c.S.ShapeOf(c.In(0)); shape.RankKnown() {
		return shape.Rank() > 0
	}
	return c.Node.Attrs.Int("output_ragged_rank") > max(0, c.Node.Attrs.Int("input_ragged_rank"))
}

// raggedGatherGrad returns the gradient of the rows of flat values that the gathered rows consist
// of.
func raggedGatherGrad(c *Call) []Grad {
	s := c.S
	grads := c.None()
	values := len(grads) - 2
	splits := c.In(0)
	for i := 1; i < values; i++ {
		splits = op.Gather(s, c.In(i), splits)
	}
	rows := op.Reshape(s, c.In(values+1), op.Const(s, []int32{-1}))
	next := op.AddV2(s, rows, op.OnesLike(s, rows))
	one := op.Cast(s, op.Const(s, int32(1)), splits.DType())
	_, from := op.RaggedRange(s, op.Gather(s, splits, rows), op.Gather(s, splits, next), one)
	grads[values] = Grad{Slices: &IndexedSlices{Values: c.DY(len(c.Node.OutTypes) - 1), Indices: from, Shape: op.Shape(s, c.In(values))}}
	return grads
}

// raggedToTensorGrad scatters the indices of the flat values as the operation scatters the values.
// Positions without an index hold the default value.
func raggedToTensorGrad(c *Call) []Grad {
	s, dy, values := c.S, c.DY(0), c.In(1)
	types := c.Node.Attrs.Strings("row_partition_types")
	rank := 1 + len(types)
	if slices.Contains(types, "FIRST_DIM_SIZE") {
		rank--
	}
	shape := op.Slice(s, op.Shape(s, dy), op.Const(s, []int32{0}), op.Const(s, []int32{int32(rank)}))
	count := op.Gather(s, op.Shape(s, values), op.Const(s, int32(0)))
	numbers := op.Range(s, op.Const(s, int32(0)), count, op.Const(s, int32(1)))
	none := op.Const(s, int32(-1))
	from := op.RaggedTensorToTensor(s, shape, numbers, none, c.Node.Inputs()[3:], types)
	isValue := op.NotEqual(s, from, none)
	at := op.Where(s, isValue)
	grads := c.None()
	grads[1] = Grad{Slices: &IndexedSlices{
		Values: op.GatherNd(s, dy, at), Indices: op.GatherNd(s, from, at), Shape: op.Shape(s, values),
	}}
	grads[2] = Of(sumTo(s, op.GatherNd(s, dy, op.Where(s, op.LogicalNot(s, isValue))), c.In(2)))
	return grads
}
