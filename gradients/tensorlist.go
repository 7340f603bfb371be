package gradients

import (
	"github.com/weft-ml/weft/op"
)

// The gradient of a list is the list of the gradients of its elements.
func init() {
	Register(func(c *Call) []Grad {
		list, element := op.TensorListPopBack(c.S, c.DY(0), op.Shape(c.S, c.In(1)), c.In(1).DType().Base())
		return List(list, element)
	}, "TensorListPushBack")
	Register(func(c *Call) []Grad {
		list := c.Grad(0).Dense
		if list.Node == nil { // the rest of the list is unused
			list = op.ZerosLike(c.S, c.Out(0))
		}
		return List(op.TensorListPushBack(c.S, list, c.DY(1)), op.Output{})
	}, "TensorListPopBack")
	Register(func(c *Call) []Grad {
		return List(op.TensorListFromTensor(c.S, c.DY(0), elementShape(c.S, c.DY(0))), op.Output{})
	}, "TensorListStack")
	Register(func(c *Call) []Grad {
		return List(op.TensorListStack(c.S, c.DY(0), elementShape(c.S, c.In(0)), c.In(0).DType().Base()), op.Output{})
	}, "TensorListFromTensor")
	Register(listConcatGrad, "TensorListConcat", "TensorListConcatV2")
	Register(func(c *Call) []Grad {
		joined, _ := op.TensorListConcatV2(c.S, c.DY(0), c.In(1), c.In(2), c.In(0).DType().Base())
		return List(joined, op.Output{}, op.Output{})
	}, "TensorListSplit")
	Register(func(c *Call) []Grad {
		s, dtype := c.S, c.Node.OutTypes[0]
		none := op.TensorListReserve(s, op.Shape(s, c.DY(0)), op.TensorListLength(s, c.In(0)), dtype)
		return List(op.TensorListSetItem(s, none, c.In(1), c.DY(0)), op.Output{}, op.Output{})
	}, "TensorListGetItem")
	Register(func(c *Call) []Grad {
		s := c.S
		rest := op.TensorListSetItem(s, c.DY(0), c.In(1), op.ZerosLike(s, c.In(2)))
		return List(rest, op.Output{}, op.TensorListGetItem(s, c.DY(0), c.In(1), op.Shape(s, c.In(2)), c.In(2).DType().Base()))
	}, "TensorListSetItem")
	Register(func(c *Call) []Grad {
		return List(op.TensorListResize(c.S, c.DY(0), op.TensorListLength(c.S, c.In(0))), op.Output{})
	}, "TensorListResize")
	Register(func(c *Call) []Grad {
		s := c.S
		none := op.TensorListReserve(s, elementShape(s, c.DY(0)), op.TensorListLength(s, c.In(0)), c.Node.OutTypes[0])
		return List(op.TensorListScatterIntoExistingList(s, none, c.DY(0), c.In(1)), op.Output{}, op.Output{})
	}, "TensorListGather")
	Register(func(c *Call) []Grad { return c.first(gatherLike(c, c.In(0), c.In(1))) }, "TensorListScatter", "TensorListScatterV2")
	Register(func(c *Call) []Grad {
		rest := op.TensorListScatterIntoExistingList(c.S, c.DY(0), op.ZerosLike(c.S, c.In(1)), c.In(2))
		return List(rest, gatherLike(c, c.In(1), c.In(2)), op.Output{})
	}, "TensorListScatterIntoExistingList")
	NotDifferentiable("TensorListReserve", "EmptyTensorList", "TensorListLength", "TensorListElementShape")
}

// elementShape returns the shape of the elements of a list whose elements are the rows of a tensor.
func elementShape(s *op.Scope, rows op.Output) op.Output {
	return op.Slice(s, op.Shape(s, rows), op.Const(s, []int32{1}), op.Const(s, []int32{-1}))
}

// gatherLike returns the gradients of the elements with the given indices, as rows of a tensor like
// rows.
func gatherLike(c *Call, rows, indices op.Output) op.Output {
	return op.TensorListGather(c.S, c.DY(0), indices, elementShape(c.S, rows), rows.DType().Base())
}

func listConcatGrad(c *Call) []Grad {
	s := c.S
	rest := op.Slice(s, op.Shape(s, c.DY(0)), op.Const(s, []int32{1}), op.Const(s, []int32{-1}))
	shape := op.ConcatV2(s, []op.Output{op.Const(s, []int32{-1}), rest}, op.Const(s, int32(0)))
	return c.first(op.TensorListSplit(s, c.DY(0), shape, c.Out(1)))
}
