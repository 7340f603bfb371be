package state

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Assign", Doc: "Assigns value to a variable and returns the reference.",
		In:                  []string{"ref: Ref(T)", "value: T"},
		Out:                 []string{"output_ref: Ref(T)"},
		Attrs:               []string{"T: type", "validate_shape: bool = true", "use_locking: bool = true"},
		AllowsUninitialized: true,
		Shape:               assignShape,
	}, newAssign)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AssignAdd", Doc: "Adds value to a variable and returns the reference.",
			In:    []string{"ref: Ref(T)", "value: T"},
			Out:   []string{"output_ref: Ref(T)"},
			Attrs: []string{"T: numbertype", "use_locking: bool = false"},
			Shape: opdef.MergedShape,
		},
		Kernels: kernel.ForTypes("T", accumulate(elementwise.Add), typeset.Numbers...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AssignSub", Doc: "Subtracts value from a variable and returns the reference.",
			In:    []string{"ref: Ref(T)", "value: T"},
			Out:   []string{"output_ref: Ref(T)"},
			Attrs: []string{"T: numbertype", "use_locking: bool = false"},
			Shape: opdef.MergedShape,
		},
		Kernels: kernel.ForTypes("T", accumulate(elementwise.Sub), typeset.Numbers...),
	})
	kernel.RegisterNew(opdef.Def{
		Name: "AssignVariableOp", Doc: "Assigns value to a variable.",
		In:       []string{"resource: resource", "value: dtype"},
		Attrs:    []string{"dtype: type", "validate_shape: bool = false"},
		Stateful: true,
		Shape:    assignVariableShape,
	}, newAssignVariable)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AssignAddVariableOp", Doc: "Adds value to a variable.",
			In:       []string{"resource: resource", "value: dtype"},
			Attrs:    []string{"dtype: type"},
			Stateful: true,
			Shape:    assignVariableShape,
		},
		Kernels: kernel.ForTypes("dtype", accumulate(elementwise.Add), typeset.Numbers...),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AssignSubVariableOp", Doc: "Subtracts value from a variable.",
			In:       []string{"resource: resource", "value: dtype"},
			Attrs:    []string{"dtype: type"},
			Stateful: true,
			Shape:    assignVariableShape,
		},
		Kernels: kernel.ForTypes("dtype", accumulate(elementwise.Sub), typeset.Numbers...),
	})
	kernel.RegisterNew(opdef.Def{
		Name: "StridedSliceAssign", Doc: "Assigns value to a strided slice of a variable and returns the reference.",
		In:    []string{"ref: Ref(T)", "begin: Index", "end: Index", "strides: Index", "value: T"},
		Out:   []string{"output_ref: Ref(T)"},
		Attrs: strided.SliceAttrs(),
		Shape: opdef.SameShape,
	}, newSliceAssign)
	kernel.RegisterNew(opdef.Def{
		Name: "ResourceStridedSliceAssign", Doc: "Assigns value to a strided slice of a variable.",
		In:       []string{"ref: resource", "begin: Index", "end: Index", "strides: Index", "value: T"},
		Attrs:    strided.SliceAttrs(),
		Stateful: true,
	}, newSliceAssign)
}

func assignShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[1]
	if !c.Attrs.Bool("validate_shape") {
		return nil
	}
	return opdef.MergedShape(c)
}

func newAssign(c *kernel.Construction) (kernel.Kernel, error) {
	validate := c.Attrs.Bool("validate_shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		v, value := ctx.InputRef(0), ctx.Input(1)
		err := v.Update(func(t *tensor.Tensor) error {
			if validate {
				if err := checkAssign(v, t, value); err != nil {
					return err
				}
			}
			t.Release()
			*t = value.Retain()
			return nil
		})
		if err == nil {
			ctx.SetOutputRef(0, v)
		}
		return err
	}), nil
}

// checkAssign compares the shape of a new value with that of the old value, or with the declared
// shape.
func checkAssign(v *kernel.Variable, old, value *tensor.Tensor) error {
	have := old.Shape()
	if !old.Initialized() {
		declared, ok := v.Declared().Full()
		if !ok {
			return nil
		}
		have = declared
	}
	if !value.Shape().Equal(have) {
		return status.InvalidArgumentf("Assign requires shapes of both tensors to match. lhs shape= %v rhs shape= %v",
			have, value.Shape())
	}
	return nil
}

// accumulate returns the kernel that updates a variable with a value of the same shape.
func accumulate(op elementwise.Op) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		value, byRef := ctx.Input(1), ctx.InputRef(0) != nil
		return change(ctx, func(t *tensor.Tensor) error {
			if !t.Shape().Equal(value.Shape()) {
				if byRef {
					return status.InvalidArgumentf("Parameters and update must be the same size")
				}
				return status.InvalidArgumentf("Cannot update variable with shape %v using a Tensor with shape %v, "+
					"shapes must be equal.", t.Shape(), value.Shape())
			}
			if t.DType() != value.DType() {
				return wrongType("Trying to assign variable with wrong dtype.", t.DType(), value.DType())
			}
			own, err := ctx.Writable(t)
			if err == nil {
				elementwise.Accumulate(op, own, value)
			}
			return err
		})
	})
}

func wrongType(what string, want, got tensor.DType) error {
	return status.InvalidArgumentf("%s Expected %v got %v", what, want, got)
}

func assignVariableShape(c *opdef.ShapeContext) error {
	s, err := elemShape(c.InHandles[0], c.Attrs.Type("dtype"))
	if err != nil {
		return err
	}
	_, err = opdef.MergeShapes(s, c.In[1])
	return err
}

// madeVariable returns the variable of input 0, which it makes if there is none.
func madeVariable(ctx *kernel.Context) (*kernel.Variable, error) {
	h, err := handle(ctx, 0)
	if err != nil {
		return nil, err
	}
	if v, ok := h.Resource.(*kernel.Variable); ok {
		return v, nil
	}
	return kernel.LookupOrCreateResource(ctx.Device.Resources, h.Container, h.Name,
		func() (*kernel.Variable, error) { return kernel.NewVariable(), nil })
}

func newAssignVariable(c *kernel.Construction) (kernel.Kernel, error) {
	validate := c.Attrs.Bool("validate_shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		v, err := madeVariable(ctx)
		if err != nil {
			return err
		}
		value := ctx.Input(1)
		return v.Update(func(t *tensor.Tensor) error {
			if t.Initialized() && t.DType() != value.DType() {
				return wrongType("Trying to assign variable with wrong dtype.", t.DType(), value.DType())
			}
			if validate && t.Initialized() && !t.Shape().Equal(value.Shape()) {
				return status.InvalidArgumentf("Trying to assign to variable with tensor with wrong shape. Expected %v got %v",
					t.Shape(), value.Shape())
			}
			t.Release()
			*t = value.Retain()
			return nil
		})
	}), nil
}

func newSliceAssign(c *kernel.Construction) (kernel.Kernel, error) {
	masks := strided.MasksOf(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		value := ctx.Input(4)
		return change(ctx, func(t *tensor.Tensor) error {
			if t.DType() != value.DType() {
				return status.InvalidArgumentf("l-value dtype %v does not match r-value dtype %v", t.DType(), value.DType())
			}
			spec, err := strided.ParseSpec(t.Shape().Partial(), ctx.Input(1), ctx.Input(2), ctx.Input(3), masks)
			if err != nil {
				return err
			}
			own, err := ctx.Writable(t)
			if err != nil {
				return err
			}
			return spec.Set(own, value)
		})
	}), nil
}
