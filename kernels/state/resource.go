package state

import (
	"github.com/weft-ml/weft/internal/dtypes"
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/ints"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// varHash is what TensorFlow has in the handles of variables to tell their type.
const varHash = 17454915466513971685

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "VarHandleOp", Doc: "A handle to the variable of the given name, which need not exist yet.",
			Out: []string{"resource: resource"},
			Attrs: []string{
				"container: string = ''", "shared_name: string = ''", "debug_name: string = ''", "dtype: type", "shape: shape",
				"allowed_devices: list(string) = []",
			},
			Stateful: true, Shape: varHandleShape,
		},
		Kernels: kernel.Any(newVarHandle),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ReadVariableOp", Doc: "The value of a variable. Later assignments do not change what was read.",
			In: []string{"resource: resource"}, Out: []string{"value: dtype"}, Attrs: []string{"dtype: type"},
			Stateful: true, Shape: readShape,
		},
		Kernels: kernel.Any(kernel.Stateless(readVariable)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "AssignVariableOp", Doc: "Makes value the value of a variable, which is made if it does not exist.",
			In: []string{"resource: resource", "value: dtype"}, Attrs: []string{"dtype: type", "validate_shape: bool = false"},
			Stateful: true, Shape: checkAssigned,
		},
		Kernels: kernel.Any(newAssignVariable),
	})
	resourceUpdate("AssignAddVariableOp", "Adds value to a variable.", elementwise.Add)
	resourceUpdate("AssignSubVariableOp", "Subtracts value from a variable.", elementwise.Sub)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "VarIsInitializedOp", Doc: "Whether a variable exists and has a value.",
			In: []string{"resource: resource"}, Out: []string{"is_initialized: bool"}, Stateful: true, Shape: opdef.ScalarShape,
		},
		Kernels: kernel.Any(kernel.Stateless(func(ctx *kernel.Context) error {
			v, err := variableOf(ctx, 0)
			ctx.SetOutput(0, tensor.Scalar(err == nil && v.Initialized()))
			return nil
		})),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "VariableShape", Doc: "The shape of the value of a variable.",
			In: []string{"input: resource"}, Out: []string{"output: out_type"}, Attrs: []string{"out_type: {int32, int64} = int32"},
			Stateful: true, Shape: sizeOfHandle,
		},
		Kernels: kernel.Any(kernel.Stateless(variableSizes)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "DestroyResourceOp", Doc: "Removes a resource from its container.",
			In: []string{"resource: resource"}, Attrs: []string{"ignore_lookup_error: bool = true"}, Stateful: true,
		},
		Kernels: kernel.Any(newDestroyResource),
	})
}

func varHandleShape(c *opdef.ShapeContext) error {
	c.Out[0] = tensor.MakePartial()
	c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("dtype"), Shape: c.Attrs.Shape("shape")}}
	return nil
}

// heldBy returns what is known of the value behind input i, after a check of its type.
func heldBy(c *opdef.ShapeContext, i int, dtype tensor.DType) (tensor.PartialShape, error) {
	if len(c.InHandles) <= i || len(c.InHandles[i]) == 0 {
		return tensor.PartialShape{}, nil
	}
	held := c.InHandles[i][0]
	if held.DType != dtype {
		return held.Shape, status.InvalidArgumentf("Trying to read variable with wrong dtype. Expected %v got %v", held.DType, dtype)
	}
	return held.Shape, nil
}

func readShape(c *opdef.ShapeContext) error {
	s, err := heldBy(c, 0, c.Attrs.Type("dtype"))
	c.Out[0] = s
	return err
}

func checkAssigned(c *opdef.ShapeContext) error {
	s, err := heldBy(c, 0, c.Attrs.Type("dtype"))
	if err != nil {
		return err
	}
	_, err = opdef.MergeShapes(s, c.In[1])
	return err
}

func sizeOfHandle(c *opdef.ShapeContext) error {
	c.Out[0] = tensor.UnknownDims(1)
	if len(c.InHandles) > 0 && len(c.InHandles[0]) > 0 && c.InHandles[0][0].Shape.RankKnown() {
		c.Out[0] = tensor.MakePartial(int64(c.InHandles[0][0].Shape.Rank()))
	}
	return nil
}

func newVarHandle(c *kernel.Construction) (kernel.Kernel, error) {
	p, err := placeOf(c)
	if err != nil {
		return nil, err
	}
	var v *kernel.Variable
	handle := tensor.Scalar(&tensor.Handle{
		Device: c.Device.Name, Container: p.container, Name: p.name, HashCode: varHash, TypeName: v.TypeName(),
		Elems: []tensor.HandleElem{{DType: c.Attrs.Type("dtype"), Shape: c.Attrs.Shape("shape")}},
	})
	return kernel.Func(func(ctx *kernel.Context) error {
		ctx.SetOutput(0, handle)
		return nil
	}), nil
}

func readVariable(ctx *kernel.Context) error {
	h, err := handleOf(ctx, 0)
	if err != nil {
		return err
	}
	v, err := kernel.LookupResource[*kernel.Variable](ctx.Device.Resources, h.Container, h.Name)
	if err != nil {
		return notFound(h, err)
	}
	t := v.Load()
	if !t.Initialized() {
		return notFound(h, status.FailedPreconditionf("Resource %s/%s has no value.", h.Container, h.Name))
	}
	if t.DType() != ctx.OutputType(0) {
		err := status.InvalidArgumentf("Trying to read variable with wrong dtype. Expected %v got %v", ctx.OutputType(0), t.DType())
		t.Release()
		return err
	}
	ctx.SetOutput(0, t)
	return nil
}

func notFound(h *tensor.Handle, err error) error {
	return status.FailedPreconditionf("Could not find variable %s. This could mean that the variable has been deleted. In TF1, it can "+
		"also mean the variable is uninitialized. Debug info: container=%s, status error message=%v", h.Name, h.Container, err)
}

func newAssignVariable(c *kernel.Construction) (kernel.Kernel, error) {
	validate := c.Attrs.Bool("validate_shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		h, err := handleOf(ctx, 0)
		if err != nil {
			return err
		}
		v, err := kernel.LookupOrCreateResource(ctx.Device.Resources, h.Container, h.Name, func() (*kernel.Variable, error) {
			return kernel.NewVariable(), nil
		})
		if err != nil {
			return err
		}
		value := ctx.Input(1)
		return v.Update(func(t *tensor.Tensor) error {
			if t.Initialized() && t.DType() != value.DType() {
				return status.InvalidArgumentf("Trying to assign variable with wrong dtype. Expected %v got %v", t.DType(), value.DType())
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

func resourceUpdate(name, doc string, op elementwise.Op) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"resource: resource", "value: dtype"}, Attrs: []string{"dtype: type"},
			Stateful: true, Shape: checkAssigned,
		},
		Kernels: kernel.ForTypes("dtype", kernel.Stateless(func(ctx *kernel.Context) error {
			v, err := variableOf(ctx, 0)
			if err != nil {
				return err
			}
			value := ctx.Input(1)
			return v.Update(func(t *tensor.Tensor) error {
				switch {
				case !t.Initialized():
					return status.FailedPreconditionf("Trying to update a variable without a value")
				case t.DType() != value.DType():
					return status.InvalidArgumentf("Trying to update variable with wrong dtype. Expected %v got %v", t.DType(), value.DType())
				case !t.Shape().Equal(value.Shape()):
					return status.InvalidArgumentf("Cannot update variable with shape %v using a Tensor with shape %v, shapes must be equal.",
						t.Shape(), value.Shape())
				}
				elementwise.Accumulate(op, kernel.Writable(t), value)
				return nil
			})
		}), dtypes.Numbers...),
	})
}

func variableSizes(ctx *kernel.Context) error {
	v, err := variableOf(ctx, 0)
	if err != nil {
		return err
	}
	t := v.Load()
	defer t.Release()
	out, err := ctx.Allocate(0, tensor.Shape{int64(t.Rank())})
	if err == nil {
		ints.Set(out, t.Shape())
	}
	return err
}

func newDestroyResource(c *kernel.Construction) (kernel.Kernel, error) {
	ignore := c.Attrs.Bool("ignore_lookup_error")
	return kernel.Func(func(ctx *kernel.Context) error {
		h, err := handleOf(ctx, 0)
		if err != nil {
			return err
		}
		if err := ctx.Device.Resources.DeleteResource(h.Container, h.TypeName, h.Name); err != nil && !ignore {
			return err
		}
		return nil
	}), nil
}
