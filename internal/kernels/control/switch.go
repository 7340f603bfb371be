// Package control implements control flow operations: Switch and Merge, loop operations, and
// operations that only order others.
//
// The executor handles most of them by name and does not call their kernels. The kernels serve
// placement and the evaluation of single nodes.
package control

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Switch", Doc: "Forwards data to output_true if pred is true and to output_false otherwise. The other output is dead.",
		In: []string{"data: T", "pred: bool"}, Out: []string{"output_false: T", "output_true: T"},
		Attrs: []string{"T: type"}, Shape: switchShape,
	}, switchTo)
	kernel.RegisterFunc(opdef.Def{
		Name: "RefSwitch", Doc: "Forwards the reference data to output_true if pred is true and to output_false otherwise.",
		In: []string{"data: Ref(T)", "pred: bool"}, Out: []string{"output_false: Ref(T)", "output_true: Ref(T)"},
		Attrs: []string{"T: type"}, Shape: switchShape, AllowsUninitialized: true,
	}, switchTo)
	kernel.RegisterFunc(opdef.Def{
		Name: "_SwitchN", Doc: "Forwards data to the output at output_index, or to the last one if the index is out of range.",
		In: []string{"data: T", "output_index: int32"}, Out: []string{"outputs: num_outs * T"},
		Attrs: []string{"num_outs: int >= 1", "T: type"}, Shape: switchShape,
	}, switchToN)
	kernel.RegisterFunc(opdef.Def{
		Name: "RefSelect", Doc: "Forwards the reference at index.",
		In: []string{"index: int32", "inputs: Ref(N * T)"}, Out: []string{"output: Ref(T)"},
		Attrs: []string{"T: type", "N: int >= 1"}, Shape: selectShape,
	}, selectRef)
}

func switchShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[1], 0); err != nil {
		return err
	}
	return opdef.SameShape(c)
}

func switchTo(ctx *kernel.Context) error {
	pred, err := scalar[bool](ctx, "second input")
	if err != nil {
		return err
	}
	port := 0
	if pred {
		port = 1
	}
	return pass(ctx, 0, port)
}

func switchToN(ctx *kernel.Context) error {
	port, err := scalar[int32](ctx, "second input")
	if err != nil {
		return err
	}
	last := ctx.NumOutputs() - 1
	if port < 0 || int(port) > last {
		return pass(ctx, 0, last)
	}
	return pass(ctx, 0, int(port))
}

// scalar returns the value of input 1.
func scalar[T tensor.Elem](ctx *kernel.Context, what string) (T, error) {
	in := ctx.Input(1)
	if in.Rank() > 0 {
		var zero T
		return zero, status.InvalidArgumentf("The %s must be a scalar, but it has shape %v", what, in.Shape())
	}
	return tensor.Value[T](in), nil
}

// pass forwards an input, value or reference, to an output.
func pass(ctx *kernel.Context, in, out int) error {
	if ref := ctx.InputRef(in); ref != nil {
		ctx.SetOutputRef(out, ref)
		return nil
	}
	return ctx.PassInput(in, out)
}

func selectShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[0], 0); err != nil {
		return err
	}
	shape := c.In[1]
	for _, in := range c.In[1:] {
		if _, full := in.Full(); !full || !in.Equal(shape) {
			return nil
		}
	}
	c.Out[0] = shape
	return nil
}

func selectRef(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() > 0 {
		return status.InvalidArgumentf("Index must be a scalar, but it has shape %v", in.Shape())
	}
	index, n := int(tensor.Value[int32](in)), ctx.NumInputs()-1
	if index < 0 || index >= n {
		return status.InvalidArgumentf("Index must be in the range [0, %d) but got %d", n, index)
	}
	ctx.SetOutputRef(0, ctx.InputRef(index+1))
	return nil
}
