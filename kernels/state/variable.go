package state

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, shape := range map[string]opdef.ShapeFn{"VariableV2": opdef.AttrShape, "Variable": variableShape} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "Holds a value from step to step and gives a reference to it. It has no value until one is assigned.",
				Out:      []string{"ref: Ref(dtype)"},
				Attrs:    []string{"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
				Stateful: true, Shape: shape,
			},
			Kernels: kernel.Any(newVariable),
		})
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "IsVariableInitialized", Doc: "Whether a variable has a value.",
			In: []string{"ref: Ref(dtype)"}, Out: []string{"is_initialized: bool"}, Attrs: []string{"dtype: type"},
			AllowsUninitialized: true, Shape: opdef.ScalarShape,
		},
		Kernels: kernel.Any(kernel.Stateless(func(ctx *kernel.Context) error {
			ctx.SetOutput(0, tensor.Scalar(ctx.InputRef(0).Initialized()))
			return nil
		})),
	})
}

// variableShape takes a scalar shape as unknown, as graphs from before VariableV2 mean it.
func variableShape(c *opdef.ShapeContext) error {
	if s := c.Attrs.Shape("shape"); s.Rank() > 0 {
		c.Out[0] = s
	}
	return nil
}

// legacyVariable is the resource of a variable behind reference edges.
type legacyVariable struct{ *kernel.Variable }

// TypeName implements kernel.Resource.
func (legacyVariable) TypeName() string { return "N10tensorflow9LegacyVarE" }

func newVariable(c *kernel.Construction) (kernel.Kernel, error) {
	p, err := placeOf(c)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		v, err := kernel.LookupOrCreateResource(ctx.Device.Resources, p.container, p.name, func() (legacyVariable, error) {
			return legacyVariable{kernel.NewVariable()}, nil
		})
		if err != nil {
			return err
		}
		ctx.SetOutputRef(0, v.Variable)
		return nil
	}), nil
}
