package gradients

import "github.com/weft-ml/weft/op"

func init() {
	Register(func(c *Call) []Grad { return []Grad{c.Grad(0)} }, "ReadVariableOp")
	Register(func(c *Call) []Grad {
		s := c.S
		shape := op.VariableShape(s, c.In(0))
		flat := op.Reshape(s, c.In(1), op.Const(s, []int32{-1}))
		inner := op.StridedSlice(s, shape, op.Const(s, []int32{1}), op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.StridedSliceEndMask(1))
		rows := op.ConcatV2(s, []op.Output{op.Reshape(s, op.Size(s, c.In(1)), op.Const(s, []int32{1})), inner}, op.Const(s, int32(0)))
		return []Grad{{Slices: &IndexedSlices{Values: op.Reshape(s, c.DY(0), rows), Indices: flat, Shape: shape}}, {}}
	}, "ResourceGather")
	NotDifferentiable("VariableV2", "Variable", "VarHandleOp", "VarIsInitializedOp", "IsVariableInitialized", "VariableShape")
}
