package gradients

import "github.com/weft-ml/weft/op"

func init() { Register(isotonicGrad, "IsotonicRegression") }

// isotonicGrad returns, for every element, the mean of the gradient over its segment. All elements
// of a segment have the mean of the input as their result.
func isotonicGrad(c *Call) []Grad {
	s, dy, segments := c.S, c.DY(0), c.Out(1)
	zero, one, flat := op.Const(s, int32(0)), op.Const(s, int32(1)), op.Const(s, []int32{-1})
	shape := op.Shape(s, segments)
	width := op.Slice(s, shape, vector(s, op.Sub(s, op.Rank(s, segments), one)), op.Const(s, []int32{1}))
	size := op.Size(s, segments)
	// Segments are numbered within each row; make the numbers unique.
	rows := op.Reshape(s, segments, op.ConcatV2(s, []op.Output{flat, width}, zero))
	starts := op.Range(s, zero, size, op.Reshape(s, width, op.Const(s, []int32{})))
	ids := op.Reshape(s, op.AddV2(s, rows, op.ExpandDims(s, starts, one)), flat)
	dy = op.Reshape(s, dy, flat)
	sum, count := op.UnsortedSegmentSum(s, dy, ids, size), op.UnsortedSegmentSum(s, op.OnesLike(s, dy), ids, size)
	means := op.RealDiv(s, sum, op.Maximum(s, count, number(s, dy, 1)))
	return c.first(op.Reshape(s, op.Gather(s, means, ids), shape))
}
