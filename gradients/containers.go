package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Maps and optionals of tensors.
func init() {
	Register(func(c *Call) []Grad {
		types, shapes := make([]tensor.DType, c.Node.NumInputs()), make([]tensor.PartialShape, c.Node.NumInputs())
		for i, in := range c.Node.Inputs() {
			types[i], shapes[i] = in.DType().Base(), c.S.ShapeOf(in)
		}
		return List(op.OptionalGetValue(c.S, c.DY(0), types, shapes)...)
	}, "OptionalFromValue")
	Register(func(c *Call) []Grad { return List(op.OptionalFromValue(c.S, c.allDYs())) }, "OptionalGetValue")
	Register(func(c *Call) []Grad {
		return c.first(op.TensorMapInsert(c.S, op.EmptyTensorMap(c.S), c.In(1), c.DY(0)))
	}, "TensorMapLookup")
	Register(func(c *Call) []Grad { return []Grad{c.Grad(0), {}} }, "TensorMapErase")
	Register(mapInsertGrad, "TensorMapInsert")
}

// mapInsertGrad removes the gradient of the value from the map of gradients, if it is there.
func mapInsertGrad(c *Call) []Grad {
	s, d, key, value := c.S, c.DY(0), c.In(1), c.In(2)
	parts := op.Cond(s, op.TensorMapHasKey(s, d, key),
		func(s *op.Scope) []op.Output {
			return []op.Output{op.TensorMapErase(s, d, key, value.DType().Base()), op.TensorMapLookup(s, d, key, value.DType().Base())}
		},
		func(s *op.Scope) []op.Output { return []op.Output{d, op.ZerosLike(s, value)} })
	return List(nth(parts, 0), op.Output{}, nth(parts, 1))
}
