package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(func(c *Call) []Grad { return List(matMul(c, c.In(0), c.In(1))) }, "MatMul")
	Register(func(c *Call) []Grad { // float32 and bfloat16 in any combination
		s, a, b := c.S, c.In(0), c.In(1)
		da, db := matMul(c, op.Cast(s, a, tensor.Float32), op.Cast(s, b, tensor.Float32))
		return List(op.Cast(s, da, a.DType()), op.Cast(s, db, b.DType()))
	}, "SparseMatMul")
	Register(func(c *Call) []Grad {
		return List(op.Cross(c.S, c.In(1), c.DY(0)), op.Cross(c.S, c.DY(0), c.In(0)))
	}, "Cross")
	Register(batchMatMul, "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
}

// matMul returns the gradients of a and b for the product that the attributes of the node describe.
func matMul(c *Call, a, b op.Output) (da, db op.Output) {
	s, dy := c.S, c.DY(0)
	a, b = conj(s, a), conj(s, b)
	mul := func(x, y op.Output, tx, ty bool) op.Output {
		return op.MatMul(s, x, y, op.MatMulTransposeA(tx), op.MatMulTransposeB(ty))
	}
	ta, tb := c.Node.Attrs.Bool("transpose_a"), c.Node.Attrs.Bool("transpose_b")
	switch {
	case !ta && !tb:
		return mul(dy, b, false, true), mul(a, dy, true, false)
	case !ta && tb:
		return mul(dy, b, false, false), mul(dy, a, true, false)
	case ta && !tb:
		return mul(b, dy, false, true), mul(a, dy, false, false)
	default:
		return mul(b, dy, true, true), mul(dy, a, true, true)
	}
}

func batchMatMul(c *Call) []Grad {
	s, x, y, dz := c.S, c.In(0), c.In(1), c.DY(0)
	mul := func(a, b op.Output, adjA, adjB bool) op.Output {
		return op.BatchMatMulV2(s, a, b, op.BatchMatMulV2AdjX(adjA), op.BatchMatMulV2AdjY(adjB))
	}
	var dx, dy op.Output
	switch adjX, adjY := c.Node.Attrs.Bool("adj_x"), c.Node.Attrs.Bool("adj_y"); {
	case !adjX && !adjY:
		dx, dy = mul(dz, y, false, true), mul(x, dz, true, false)
	case !adjX && adjY:
		dx, dy = mul(dz, y, false, false), mul(dz, x, true, false)
	case adjX && !adjY:
		dx, dy = mul(y, dz, false, true), mul(x, dz, false, false)
	default:
		dx, dy = mul(y, dz, true, true), mul(dz, x, true, true)
	}
	// Only the dimensions before the last two broadcast against each other.
	batch := func(o op.Output) op.Output {
		return op.StridedSlice(s, op.Shape(s, o), op.Const(s, []int32{0}), op.Const(s, []int32{-2}), op.Const(s, []int32{1}),
			op.StridedSliceBeginMask(1))
	}
	rx, ry := op.BroadcastGradientArgs(s, batch(x), batch(y))
	return List(op.Reshape(s, op.Sum(s, dx, rx), op.Shape(s, x)), op.Reshape(s, op.Sum(s, dy, ry), op.Shape(s, y)))
}
