package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Operations that move elements. Their gradients move them back.
func init() {
	for forward, back := range map[string]string{
		"Diag": "DiagPart", "DiagPart": "Diag", "MatrixDiag": "MatrixDiagPart", "MatrixBandPart": "MatrixBandPart",
		"SpaceToBatch": "BatchToSpace", "SpaceToBatchND": "BatchToSpaceND", "SpaceToDepth": "DepthToSpace",
		"BatchToSpace": "SpaceToBatch", "BatchToSpaceND": "SpaceToBatchND", "DepthToSpace": "SpaceToDepth",
		"MirrorPad": "MirrorPadGrad", "MirrorPadGrad": "MirrorPad",
		"Reverse": "Reverse", "ReverseV2": "ReverseV2", "ReverseSequence": "ReverseSequence",
	} {
		Register(func(c *Call) []Grad {
			in := append([]op.Output{c.DY(0)}, c.Node.Inputs()[1:]...)
			return c.first(output(c.like(back, in...), 0))
		}, forward)
	}
	Register(func(c *Call) []Grad { return c.first(op.Roll(c.S, c.DY(0), op.Neg(c.S, c.In(1)), c.In(2))) }, "Roll")
	Register(patches, "ExtractImagePatches", "ExtractVolumePatches")
	Register(topK, "TopK", "TopKV2")
	Register(approxTopK, "ApproxTopK")
	Register(func(c *Call) []Grad {
		grads := c.None()
		n := len(grads) / 2
		for i := range n {
			grads[n+i] = Of(op.Gather(c.S, c.DY(0), c.In(i)))
		}
		return grads
	}, "DynamicStitch", "ParallelDynamicStitch")
}

func init() {
	Register(func(c *Call) []Grad {
		s, shape := c.S, op.Shape(c.S, c.In(1))
		places := op.Range(s, op.Const(s, int32(0)), op.Size(s, c.In(1)), op.Const(s, int32(1)))
		n := int64(c.Node.Attrs.Int("num_partitions"))
		at := op.DynamicPartition(s, op.Reshape(s, places, shape), c.In(1), n)
		parts := make([]op.Output, n)
		for i := range parts {
			parts[i] = c.DY(i)
		}
		return c.first(op.Reshape(s, op.ParallelDynamicStitch(s, at, parts), op.Shape(s, c.In(0))))
	}, "DynamicPartition")
}

// Diagonals of matrices.
func init() {
	for _, version := range []string{"V2", "V3"} {
		Register(func(c *Call) []Grad {
			return c.first(output(c.like("MatrixDiagPart"+version, c.DY(0), c.In(1), number(c.S, c.DY(0), 0)), 0))
		}, "MatrixDiag"+version)
	}
	for _, version := range []string{"", "V2", "V3"} {
		Register(func(c *Call) []Grad {
			in := append([]op.Output{op.ZerosLike(c.S, c.In(0)), c.DY(0)}, c.Node.Inputs()[1:min(2, c.Node.NumInputs())]...)
			return c.first(output(c.like("MatrixSetDiag"+version, in...), 0))
		}, "MatrixDiagPart"+version)
		Register(func(c *Call) []Grad {
			k := c.Node.Inputs()[2:] // which diagonals; empty for the main one
			rest := append([]op.Output{c.DY(0), op.ZerosLike(c.S, c.In(1))}, k...)
			part := append([]op.Output{c.DY(0)}, k...)
			if len(k) > 0 {
				part = append(part, number(c.S, c.DY(0), 0))
			}
			grads := c.None()
			grads[0] = Of(output(c.like("MatrixSetDiag"+version, rest...), 0))
			grads[1] = Of(output(c.like("MatrixDiagPart"+version, part...), 0))
			return grads
		}, "MatrixSetDiag"+version)
	}
}

// patches sums the gradients of all patches that contain an element. It finds the source of each
// patch element by extracting patches of element numbers that start at one; zeros are padding.
func patches(c *Call) []Grad {
	s := c.S
	zero, one, minusOne := op.Const(s, int32(0)), op.Const(s, []int32{1}), op.Const(s, []int32{-1})
	inShape := op.Shape(s, c.In(0))
	part := func(lo, hi []int32) op.Output {
		return op.StridedSlice(s, inShape, op.Const(s, lo), op.Const(s, hi), one)
	}
	batch, space, channels := part([]int32{0}, []int32{1}), part([]int32{1}, []int32{-1}), part([]int32{-1}, []int32{1 << 30})
	places := op.Prod(s, space, zero)
	numbers := op.Range(s, op.Const(s, int32(1)), op.AddV2(s, places, op.Const(s, int32(1))), op.Const(s, int32(1)))
	numbers = op.Reshape(s, numbers, op.ConcatV2(s, []op.Output{one, space, one}, zero))
	from := op.Sub(s, op.Reshape(s, output(c.like(c.Node.Op.Name, numbers), 0), minusOne), op.Const(s, int32(1)))

	// [batch, taken, channels] to [taken, batch, channels] and back
	order := op.Const(s, []int32{1, 0, 2})
	taken := op.Reshape(s, c.DY(0), op.ConcatV2(s, []op.Output{batch, minusOne, channels}, zero))
	sum := op.UnsortedSegmentSum(s, op.Transpose(s, taken, order), from, places)
	return c.first(op.Reshape(s, op.Transpose(s, sum, order), inShape))
}

// topK scatters the gradient to the positions of the values, in the last dimension.
func topK(c *Call) []Grad {
	return c.first(scatterRows(c.S, c.DY(0), c.Out(1), op.Shape(c.S, c.In(0))))
}

// approxTopK does the same in any dimension, by swapping it with the last one.
func approxTopK(c *Call) []Grad {
	s, axis := c.S, op.Const(c.S, int32(c.Node.Attrs.Int("reduction_dimension")))
	rank, one := op.Rank(s, c.In(0)), op.Const(s, int32(1))
	last := op.Sub(s, rank, one)
	axis = op.FloorMod(s, axis, rank)
	order := op.Range(s, op.Const(s, int32(0)), rank, one)
	order = op.SelectV2(s, op.Equal(s, order, axis), last, op.SelectV2(s, op.Equal(s, order, last), axis, order))
	shape := op.Gather(s, op.Shape(s, c.In(0)), order)
	return c.first(op.Transpose(s, scatterRows(s, op.Transpose(s, c.DY(0), order), op.Transpose(s, c.Out(1), order), shape), order))
}

// scatterRows scatters the elements of each row of d to the given positions of a row of zeros.
func scatterRows(s *op.Scope, d, places, shape op.Output) op.Output {
	zero, one, last := op.Const(s, int32(0)), op.Const(s, int32(1)), op.Const(s, []int32{-1})
	size := op.Prod(s, shape, zero)
	at := op.Sub(s, op.Size(s, shape), one)
	columns, k := op.Gather(s, shape, at), op.Gather(s, op.Shape(s, places), at)
	rows := op.Reshape(s, op.Cast(s, places, tensor.Int32), op.Pack(s, []op.Output{op.Const(s, int32(-1)), k}))
	starts := op.Range(s, zero, size, columns)
	flat := op.Reshape(s, op.AddV2(s, rows, op.ExpandDims(s, starts, one)), op.Const(s, []int32{-1, 1}))
	return op.Reshape(s, op.ScatterNd(s, flat, op.Reshape(s, d, last), vector(s, size)), shape)
}
