package state

import (
	"github.com/weft-ml/weft/internal/dtypes"
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Assign", Doc: "Makes value the value of a variable and gives a reference to it.",
			In: []string{"ref: Ref(T)", "value: T"}, Out: []string{"output_ref: Ref(T)"},
			Attrs:               []string{"T: type", "validate_shape: bool = true", "use_locking: bool = true"},
			AllowsUninitialized: true, Shape: assignShape,
		},
		Kernels: kernel.Any(newAssign),
	})
	assignUpdate("AssignAdd", "Adds value to a variable and gives a reference to it.", elementwise.Add)
	assignUpdate("AssignSub", "Subtracts value from a variable and gives a reference to it.", elementwise.Sub)
}

func assignShape(c *opdef.ShapeContext) error {
	if c.Attrs.Bool("validate_shape") {
		return opdef.MergedShape(c)
	}
	c.Out[0] = c.In[1]
	return nil
}

func newAssign(c *kernel.Construction) (kernel.Kernel, error) {
	validate := c.Attrs.Bool("validate_shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		v, value := ctx.InputRef(0), ctx.Input(1)
		err := v.Update(func(t *tensor.Tensor) error {
			if validate && t.Initialized() && !t.Shape().Equal(value.Shape()) {
				return status.InvalidArgumentf("Assign requires shapes of both tensors to match. lhs shape= %v rhs shape= %v",
					t.Shape(), value.Shape())
			}
			t.Release()
			*t = value.Retain()
			return nil
		})
		if err != nil {
			return err
		}
		ctx.SetOutputRef(0, v)
		return nil
	}), nil
}

func assignUpdate(name, doc string, op elementwise.Op) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc,
			In: []string{"ref: Ref(T)", "value: T"}, Out: []string{"output_ref: Ref(T)"},
			Attrs: []string{"T: " + numbers, "use_locking: bool = false"}, Shape: opdef.MergedShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(func(ctx *kernel.Context) error {
			v, value := ctx.InputRef(0), ctx.Input(1)
			err := v.Update(func(t *tensor.Tensor) error {
				if !t.Shape().Equal(value.Shape()) {
					return status.InvalidArgumentf("Parameters and update must be the same size")
				}
				elementwise.Accumulate(op, kernel.Writable(t), value)
				return nil
			})
			if err != nil {
				return err
			}
			ctx.SetOutputRef(0, v)
			return nil
		}), dtypes.Numbers...),
	})
}
