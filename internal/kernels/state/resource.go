package state

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "VarHandleOp", Doc: "Returns a handle to the variable with the given name and container.",
		Out: []string{"resource: resource"},
		Attrs: []string{
			"container: string = ''",
			"shared_name: string = ''",
			"debug_name: string = ''",
			"dtype: type",
			"shape: shape",
			"allowed_devices: list(string) = []",
		},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = shapefn.Of()
			c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("dtype"), Shape: c.Attrs.Shape("shape")}}
			return nil
		},
	}, newVarHandle)
	kernel.RegisterNew(opdef.Def{
		Name: "_VarHandlesOp", Doc: "Returns handles to several variables.",
		Out: []string{"resources: N * resource"},
		Attrs: []string{
			"containers: list(string)",
			"shared_names: list(string)",
			"N: int >= 0",
			"dtypes: list(type)",
			"shapes: list(shape)",
		},
		Stateful: true,
		Shape:    varHandlesShape,
	}, newVarHandles)
	kernel.RegisterFunc(opdef.Def{
		Name: "ReadVariableOp", Doc: "Returns the value of a variable.",
		In:       []string{"resource: resource"},
		Out:      []string{"value: dtype"},
		Attrs:    []string{"dtype: type"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			s, err := elemShape(c.InHandles[0], c.Attrs.Type("dtype"))
			c.SetAll(s)
			return err
		},
	}, readVariable)
	kernel.RegisterFunc(opdef.Def{
		Name: "_ReadVariablesOp", Doc: "Returns the values of several variables.",
		In:       []string{"resources: N * resource"},
		Out:      []string{"values: dtypes"},
		Attrs:    []string{"N: int >= 0", "dtypes: list(type) >= 1"},
		Stateful: true,
		Shape:    readVariablesShape,
	}, readVariables)
	kernel.RegisterNew(opdef.Def{
		Name: "DestroyResourceOp", Doc: "Deletes the resource behind a handle.",
		In:       []string{"resource: resource"},
		Attrs:    []string{"ignore_lookup_error: bool = true"},
		Stateful: true,
	}, newDestroy)
	kernel.RegisterFunc(opdef.Def{
		Name: "VarIsInitializedOp", Doc: "Returns true if the variable is initialized.",
		In:       []string{"resource: resource"},
		Out:      []string{"is_initialized: bool"},
		Stateful: true,
		Shape:    opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		v, err := lookup(ctx, 0)
		if err != nil && status.CodeOf(err) != status.NotFound {
			return err
		}
		return setBool(ctx, err == nil && v.Initialized())
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "VariableShape", Doc: "Returns the shape of the value of a variable.",
		In:       []string{"input: resource"},
		Out:      []string{"output: out_type"},
		Attrs:    []string{"out_type: {int32, int64} = int32"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = shapefn.Of(shapefn.Unknown)
			if elems := c.InHandles[0]; len(elems) > 0 {
				c.Out[0] = shapefn.Of(int64(elems[0].Shape.Rank()))
			}
			return nil
		},
	}, shapeOf)
	kernel.RegisterFunc(opdef.Def{
		Name: "DisableCopyOnRead", Doc: "Does nothing, because reading a variable never copies its value.",
		In:       []string{"resource: resource"},
		Stateful: true,
	}, func(ctx *kernel.Context) error {
		_, err := lookup(ctx, 0)
		return err
	})
}

// anonymous is the shared_name that requests a separate variable for each handle.
const anonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

func makeHandle(c *kernel.Construction, container, name string, elem tensor.HandleElem) *tensor.Handle {
	if container == "" {
		container = c.Device.Resources.DefaultContainer()
	}
	var none *kernel.Variable
	return &tensor.Handle{
		Device: c.Device.Name, Container: container, Name: name, HashCode: varHash, TypeName: none.TypeName(),
		Elems: []tensor.HandleElem{elem},
	}
}

func newVarHandle(c *kernel.Construction) (kernel.Kernel, error) {
	if err := resource.CheckContainer(c.Attrs.String("container")); err != nil {
		return nil, err
	}
	name := c.Attrs.String("shared_name")
	h := makeHandle(c, c.Attrs.String("container"), name,
		tensor.HandleElem{DType: c.Attrs.Type("dtype"), Shape: c.Attrs.Shape("shape")})
	shared := tensor.Scalar(h)
	return kernel.Func(func(ctx *kernel.Context) error {
		if name != anonymous {
			ctx.SetOutput(0, shared.Retain())
			return nil
		}
		own := *h
		own.Resource = kernel.NewVariable()
		ctx.SetOutput(0, tensor.Scalar(&own))
		return nil
	}), nil
}

func varHandlesShape(c *opdef.ShapeContext) error {
	types, all := c.Attrs.Types("dtypes"), c.Attrs.Shapes("shapes")
	if len(types) != len(c.Out) {
		return status.InvalidArgumentf("Mismatched number of dtypes (n=%d, num dtypes=%d)", len(c.Out), len(types))
	}
	if len(all) != len(c.Out) {
		return status.InvalidArgumentf("Mismatched number of shapes (n=%d, num shapes=%d)", len(c.Out), len(all))
	}
	for i := range c.Out {
		c.Out[i] = shapefn.Of()
		c.OutHandles[i] = []tensor.HandleElem{{DType: types[i], Shape: all[i]}}
	}
	return nil
}

func newVarHandles(c *kernel.Construction) (kernel.Kernel, error) {
	containers, sharedNames := c.Attrs.Strings("containers"), c.Attrs.Strings("shared_names")
	types, all, n := c.Attrs.Types("dtypes"), c.Attrs.Shapes("shapes"), c.Attrs.Int("N")
	if len(containers) != n || len(sharedNames) != n || len(types) != n || len(all) != n {
		return nil, status.InvalidArgumentf("_VarHandlesOp: lists of %d containers, %d names, %d types and %d shapes for %d handles",
			len(containers), len(sharedNames), len(types), len(all), n)
	}
	handles := membudget.Make[tensor.Tensor](n)
	for i := range handles {
		handles[i] = tensor.Scalar(makeHandle(c, containers[i], sharedNames[i], tensor.HandleElem{DType: types[i], Shape: all[i]}))
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		for i := range handles {
			ctx.SetOutput(i, handles[i].Retain())
		}
		return nil
	}), nil
}

func readVariable(ctx *kernel.Context) error {
	h, err := handle(ctx, 0)
	if err != nil {
		return err
	}
	v, err := find(ctx, h)
	if status.CodeOf(err) == status.NotFound {
		return status.FailedPreconditionf("Could not find variable %s. This could mean that the variable has been deleted. "+
			"In TF1, it can also mean the variable is uninitialized. Debug info: container=%s, status error message=%s",
			h.Name, h.Container, err.Error())
	}
	if err != nil {
		return err
	}
	value := v.Load()
	if !value.Initialized() {
		return status.FailedPreconditionf("Could not find variable %s. This could mean that the variable has been deleted. "+
			"In TF1, it can also mean the variable is uninitialized. Debug info: container=%s, status error message=%s",
			h.Name, h.Container, "the variable has no value")
	}
	if want := ctx.OutputType(0); value.DType() != want {
		defer value.Release()
		return wrongType("Trying to read variable with wrong dtype.", want, value.DType())
	}
	ctx.SetOutput(0, value)
	return nil
}

func readVariablesShape(c *opdef.ShapeContext) error {
	types := c.Attrs.Types("dtypes")
	if len(types) != len(c.In) {
		return status.InvalidArgumentf("Mismatched number of arguments to ReadVariablesOp")
	}
	for i := range c.Out {
		var err error
		if c.Out[i], err = elemShape(c.InHandles[i], types[i]); err != nil {
			return err
		}
	}
	return nil
}

func readVariables(ctx *kernel.Context) error {
	if ctx.NumInputs() != ctx.NumOutputs() {
		return status.InvalidArgumentf("Mismatched number of arguments to ReadVariablesOp: %d resources and %d dtypes", ctx.NumInputs(), ctx.NumOutputs())
	}
	var missing []string
	for i := range ctx.NumInputs() {
		h, err := handle(ctx, i)
		if err != nil {
			return err
		}
		v, err := find(ctx, h)
		if err != nil || !v.Initialized() {
			missing = append(missing, h.Name)
			continue
		}
		value := v.Load()
		ctx.SetOutput(i, value)
		if want := ctx.OutputType(i); value.DType() != want {
			return status.InvalidArgumentf("Trying to read variable %s from Container: %s with wrong dtype. Expected %v got %v",
				h.Name, h.Container, want, value.DType())
		}
	}
	if missing != nil {
		var meter membudget.Meter
		return status.FailedPreconditionf("In ReadVariablesOp the following variables were found uninitialized: %s",
			meter.Join(missing, ", "))
	}
	return nil
}

func newDestroy(c *kernel.Construction) (kernel.Kernel, error) {
	ignore := c.Attrs.Bool("ignore_lookup_error")
	return kernel.Func(func(ctx *kernel.Context) error {
		h, err := handle(ctx, 0)
		if err != nil {
			return err
		}
		if h.Resource != nil {
			return nil // the resource is deleted with its last handle
		}
		err = ctx.Device.Resources.DeleteResource(h.Container, h.TypeName, h.Name)
		if ignore && status.CodeOf(err) == status.NotFound {
			return nil
		}
		return err
	}), nil
}

func shapeOf(ctx *kernel.Context) error {
	v, err := lookup(ctx, 0)
	if err != nil {
		return err
	}
	value := v.Load()
	defer value.Release()
	out, err := ctx.Allocate(0, tensor.Shape{int64(value.Rank())})
	if err == nil {
		intarg.Set(out, value.Shape())
	}
	return err
}
