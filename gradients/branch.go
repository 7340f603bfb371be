package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	Register(switchGrad, "Switch", "RefSwitch")
	Register(mergeGrad, "Merge", "RefMerge")
}

// switchGrad merges the gradients of both branches of a condition. One of them is dead.
func switchGrad(c *Call) []Grad {
	s, pred := c.S, c.In(1)
	sides := [2]op.Output{}
	if f, t := c.Grad(0), c.Grad(1); f.Slices != nil && t.Slices != nil {
		merge := func(x, y op.Output) op.Output {
			o, _ := op.Merge(s, []op.Output{x, y})
			return o
		}
		indices := sameIndexType(s, []op.Output{f.Slices.Indices, t.Slices.Indices})
		return []Grad{{Slices: &IndexedSlices{
			Values: merge(f.Slices.Values, t.Slices.Values), Indices: merge(indices[0], indices[1]),
			Shape: shapeOf(s, c.In(0), tensor.Int32),
		}}, {}}
	}
	for i := range sides {
		if !c.Grad(i).IsNone() {
			sides[i] = Densify(s, c.Grad(i))
		}
	}
	for i, other := range [2]op.Output{sides[1], sides[0]} {
		if sides[i].Node == nil {
			f, t := op.Switch(s, zerosFor(s, c.In(0), other.DType()), pred)
			sides[i] = [2]op.Output{f, t}[i]
		}
	}
	dx, _ := op.Merge(s, sides[:])
	return List(dx, op.Output{})
}

// zerosFor returns zeros of the shape of a tensor, or of the variable behind a handle.
func zerosFor(s *op.Scope, o op.Output, dtype tensor.DType) op.Output {
	if o.DType() == tensor.Resource {
		return op.Fill(s, shapeOf(s, o, tensor.Int32), op.ConstOf(s, dtype.Base(), 0))
	}
	return op.ZerosLike(s, o)
}

// mergeGrad passes the gradient to the input that was taken. The gradients of the others are dead.
func mergeGrad(c *Call) []Grad {
	s, grads := c.S, c.None()
	for i := range grads {
		taken := op.Equal(s, c.Out(1), op.Const(s, int32(i)))
		grads[i] = c.Grad(0).Map(func(dy op.Output) op.Output {
			_, live := op.Switch(s, dy, taken)
			return live
		})
	}
	return grads
}
