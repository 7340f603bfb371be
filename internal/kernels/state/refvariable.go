package state

import (
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "VariableV2", Doc: "Returns a reference to the variable named by container and shared_name, or by the node name.",
		Out:      []string{"ref: Ref(dtype)"},
		Attrs:    []string{"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
		Stateful: true,
		Shape:    opdef.AttrShape,
	}, newRefVariable)
	kernel.RegisterNew(opdef.Def{
		Name: "Variable", Doc: "Returns a reference to a variable. A shape without dimensions means an unknown shape.",
		Out:      []string{"ref: Ref(dtype)"},
		Attrs:    []string{"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			if s := c.Attrs.Shape("shape"); s.Rank() > 0 {
				c.Out[0] = s
			}
			return nil
		},
	}, newRefVariable)
	kernel.RegisterFunc(opdef.Def{
		Name: "IsVariableInitialized", Doc: "Returns true if the variable is initialized.",
		In:                  []string{"ref: Ref(dtype)"},
		Out:                 []string{"is_initialized: bool"},
		Attrs:               []string{"dtype: type"},
		AllowsUninitialized: true,
		Shape:               opdef.ScalarShape,
	}, func(ctx *kernel.Context) error { return setBool(ctx, ctx.InputRef(0).Initialized()) })
	kernel.RegisterNew(opdef.Def{
		Name: "TemporaryVariable", Doc: "Returns a reference to a variable that exists until DestroyTemporaryVariable, at " +
			"most until the end of the step.",
		Out:      []string{"ref: Ref(dtype)"},
		Attrs:    []string{"shape: shape", "dtype: type", "var_name: string = ''"},
		Stateful: true,
		Shape:    opdef.AttrShape,
	}, newTemporary)
	kernel.RegisterNew(opdef.Def{
		Name: "DestroyTemporaryVariable", Doc: "Destroys a temporary variable and returns its last value.",
		In:    []string{"ref: Ref(T)"},
		Out:   []string{"value: T"},
		Attrs: []string{"T: type", "var_name: string"},
		Shape: opdef.SameShape,
	}, newDestroyTemporary)
	kernel.RegisterFunc(opdef.Def{
		Name: "RefIdentity", Doc: "Returns its input reference.",
		In:                  []string{"input: Ref(T)"},
		Out:                 []string{"output: Ref(T)"},
		Attrs:               []string{"T: type"},
		AllowsUninitialized: true,
		Shape:               opdef.SameShape,
	}, passRef)
	kernel.RegisterFunc(opdef.Def{
		Name: "DebugGradientRefIdentity", Doc: "Returns its input reference, as a marker for gradient debugging.",
		In:                  []string{"input: Ref(T)"},
		Out:                 []string{"output: Ref(T)"},
		Attrs:               []string{"T: type"},
		AllowsUninitialized: true,
		Shape:               opdef.SameShape,
	}, passRef)
}

// refVariable is a variable accessed by reference. Its resource type differs from that of resource
// variables, so one of each may have the same name.
type refVariable struct{ *kernel.Variable }

// TypeName names the resource as TensorFlow does.
func (*refVariable) TypeName() string { return "N10tensorflow9LegacyVarE" }

// names returns the container and name of a resource from the node's attributes.
func names(c *kernel.Construction) (container, name string, err error) {
	container, name = c.Attrs.String("container"), c.Attrs.String("shared_name")
	if name == "" {
		name = c.Node
	}
	return container, name, resource.CheckContainer(container)
}

func newRefVariable(c *kernel.Construction) (kernel.Kernel, error) {
	container, name, err := names(c)
	if err != nil {
		return nil, err
	}
	shape := c.Attrs.Shape("shape")
	return kernel.Func(func(ctx *kernel.Context) error {
		v, err := kernel.LookupOrCreateResource(ctx.Device.Resources, container, name, func() (*refVariable, error) {
			return &refVariable{kernel.NewVariableOf(shape)}, nil
		})
		if err == nil {
			ctx.SetOutputRef(0, v.Variable)
		}
		return err
	}), nil
}

func setBool(ctx *kernel.Context, v bool) error {
	out, err := ctx.Allocate(0, nil)
	if err == nil {
		tensor.Values[bool](out)[0] = v
	}
	return err
}

func passRef(ctx *kernel.Context) error {
	ctx.SetOutputRef(0, ctx.InputRef(0))
	return nil
}

// temporary is a variable that exists during one step.
type temporary struct{ *kernel.Variable }

// TypeName names the resource as TensorFlow does.
func (*temporary) TypeName() string { return "N10tensorflow19TemporaryVariableOp6TmpVarE" }

// temporaryName returns a name that is unique for each loop iteration.
func temporaryName(name string, at kernel.FrameIter) string {
	return fmt.Sprintf("%s/frame:%d/iter:%d", name, at.Frame, at.Iter)
}

func newTemporary(c *kernel.Construction) (kernel.Kernel, error) {
	name, dtype := c.Attrs.String("var_name"), c.Attrs.Type("dtype")
	if name == "" {
		name = c.Node
	}
	shape, ok := c.Attrs.Shape("shape").Full()
	if !ok {
		return nil, status.InvalidArgumentf("shape of a temporary variable must be known, is %v", c.Attrs.Shape("shape"))
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		value, err := tensor.Zeros(dtype, shape)
		if err != nil {
			return err
		}
		v := kernel.NewVariable()
		v.Store(value)
		if err := kernel.CreateResource(ctx.Step.Resources, "", temporaryName(name, ctx.At), &temporary{v}); err != nil {
			return err
		}
		ctx.SetOutputRef(0, v)
		return nil
	}), nil
}

func newDestroyTemporary(c *kernel.Construction) (kernel.Kernel, error) {
	name := c.Attrs.String("var_name")
	if name == "" {
		return nil, status.InvalidArgumentf("Missing var_name attribute")
	}
	var none *temporary
	return kernel.Func(func(ctx *kernel.Context) error {
		value := ctx.InputRef(0).Load()
		if err := ctx.Step.Resources.DeleteResource("", none.TypeName(), temporaryName(name, ctx.At)); err != nil {
			value.Release()
			return err
		}
		ctx.SetOutput(0, value)
		return nil
	}), nil
}
