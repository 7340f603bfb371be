package array

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Const", Doc: "Returns a constant tensor.",
		Out:   []string{"output: dtype"},
		Attrs: []string{"value: tensor", "dtype: type"},
		Shape: constShape,
	}, newConst)
	kernel.RegisterNew(opdef.Def{
		Name: "HostConst", Doc: "Returns a constant tensor in host memory.",
		Out:   []string{"output: dtype"},
		Attrs: []string{"value: tensor", "dtype: type"},
		Shape: opdef.UnknownShape,
	}, newConst)
	kernel.RegisterNew(opdef.Def{
		Name: "Placeholder", Doc: "Represents a tensor that must be fed.",
		Out:   []string{"output: dtype"},
		Attrs: []string{"dtype: type", "shape: shape = <unknown>"},
		Shape: opdef.AttrShape,
	}, newPlaceholder)
	kernel.RegisterNew(opdef.Def{
		Name: "PlaceholderV2", Doc: "Represents a tensor that must be fed.",
		Out:   []string{"output: dtype"},
		Attrs: []string{"dtype: type", "shape: shape"},
		Shape: opdef.AttrShape,
	}, newPlaceholder)
	kernel.RegisterFunc(opdef.Def{
		Name: "PlaceholderWithDefault", Doc: "Returns the input unless its output is fed.",
		In:    []string{"input: dtype"},
		Out:   []string{"output: dtype"},
		Attrs: []string{"dtype: type", "shape: shape"},
		Shape: placeholderWithDefaultShape,
	}, pass)
}

func constShape(c *opdef.ShapeContext) error {
	if v := c.Attrs.Tensor("value"); v != nil {
		c.Out[0] = v.Shape().Partial()
	}
	return nil
}

// constant is the kernel of Const. All steps share the elements of its value.
type constant struct{ value tensor.Tensor }

func newConst(c *kernel.Construction) (kernel.Kernel, error) {
	v := c.Attrs.Tensor("value")
	if v == nil || v.DType() != c.Attrs.Type("dtype") {
		return nil, status.InvalidArgumentf("Type mismatch between value (%v) and dtype (%v)",
			v.DType(), c.Attrs.Type("dtype"))
	}
	return &constant{value: v.Retain()}, nil
}

func (k *constant) Compute(ctx *kernel.Context) error {
	ctx.SetOutput(0, k.value.Retain())
	return nil
}

func (k *constant) Close() { k.value.Release() }

func newPlaceholder(c *kernel.Construction) (kernel.Kernel, error) {
	name, shape := c.Node, c.Attrs.Shape("shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		if shape.Rank() > 0 {
			return status.InvalidArgumentf("You must feed a value for placeholder tensor '%s' with dtype %v and shape %v",
				name, ctx.OutputType(0), shape)
		}
		return status.InvalidArgumentf("You must feed a value for placeholder tensor '%s' with dtype %v",
			name, ctx.OutputType(0))
	}), nil
}

func placeholderWithDefaultShape(c *opdef.ShapeContext) error {
	want := c.Attrs.Shape("shape")
	if _, err := opdef.MergeShapes(c.In[0], want); err != nil {
		return err
	}
	c.Out[0] = want
	return nil
}
