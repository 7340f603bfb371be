package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Arithmetic of sparse tensors with dense ones, and reductions.
func init() {
	Register(func(c *Call) []Grad {
		return sparseDense(c, func(dz, _, _ op.Output) (dx, dy op.Output) { return dz, dz })
	}, "SparseDenseCwiseAdd")
	Register(func(c *Call) []Grad {
		return sparseDense(c, func(dz, x, y op.Output) (dx, dy op.Output) { return op.Mul(c.S, dz, y), op.Mul(c.S, dz, x) })
	}, "SparseDenseCwiseMul")
	Register(func(c *Call) []Grad {
		return sparseDense(c, func(dz, x, y op.Output) (dx, dy op.Output) {
			dx = op.RealDiv(c.S, dz, y)
			return dx, op.Neg(c.S, op.RealDiv(c.S, op.Mul(c.S, dx, x), y))
		})
	}, "SparseDenseCwiseDiv")
	Register(func(c *Call) []Grad {
		return List(op.Output{}, op.GatherNd(c.S, c.DY(0), c.In(0)), op.Output{}, c.DY(0))
	}, "SparseTensorDenseAdd")
	Register(func(c *Call) []Grad {
		s, shape := c.S, op.Cast(c.S, c.In(2), tensor.Int64)
		rank := op.Size(s, shape)
		axes := op.FloorMod(s, op.Reshape(s, c.In(3), op.Const(s, []int32{-1})), rank)
		ones := op.ScatterNd(s, op.ExpandDims(s, axes, op.Const(s, int32(1))), op.OnesLike(s, axes), op.ExpandDims(s, rank, op.Const(s, int32(0))))
		kept := op.SelectV2(s, op.Greater(s, ones, op.Const(s, int32(0))), op.OnesLike(s, shape), shape)
		dy := op.Reshape(s, c.DY(0), kept)
		return List(op.Output{}, op.GatherNd(s, dy, op.FloorDiv(s, c.In(0), op.FloorDiv(s, shape, kept))), op.Output{}, op.Output{})
	}, "SparseReduceSum")
	Register(func(c *Call) []Grad {
		s, y, dy := c.S, c.Out(0), c.DY(0)
		sums := op.SparseReduceSum(s, c.In(0), op.Mul(s, y, dy), c.In(2), op.Const(s, []int32{-1}), op.SparseReduceSumKeepDims(true))
		shifted := op.SparseDenseCwiseAdd(s, c.In(0), dy, c.In(2), op.Neg(s, sums))
		return List(op.Output{}, op.Mul(s, shifted, y), op.Output{})
	}, "SparseSoftmax")
}

// sparseDense differentiates a function of the values of a sparse tensor and of the elements of a
// dense tensor at the same positions. The dense tensor may be broadcast.
func sparseDense(c *Call, partial func(dz, x, y op.Output) (dx, dy op.Output)) []Grad {
	s, indices, x, y := c.S, c.In(0), c.In(1), c.In(3)
	shape := op.Shape(s, y, op.ShapeOutType(tensor.Int64))
	// dimensions of the sparse tensor only
	more := op.Sub(s, op.Size(s, c.In(2)), op.Size(s, shape))
	zero, one := op.Const(s, int32(0)), op.Const(s, int64(1))
	padded := op.ConcatV2(s, []op.Output{op.Fill(s, vector(s, more), one), shape}, zero)
	at := op.FloorDiv(s, indices, op.FloorDiv(s, c.In(2), padded))
	at = op.Slice(s, at, op.Pack(s, []op.Output{zero, more}), op.Const(s, []int32{-1, -1}))
	dx, dy := partial(c.DY(0), conj(s, x), conj(s, op.GatherNd(s, y, at)))
	return List(op.Output{}, dx, op.Output{}, op.ScatterNd(s, at, dy, shape))
}
