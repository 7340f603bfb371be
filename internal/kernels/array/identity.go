package array

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Identity", Doc: "Returns the input.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name: "_EagerConst", Doc: "Returns the input, a constant that an eager client places on another device.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name: "IdentityN", Doc: "Returns all inputs. An output is available only after all inputs are.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: list(type) >= 1"},
		Shape: func(c *opdef.ShapeContext) error {
			copy(c.Out, c.In)
			copy(c.OutHandles, c.InHandles)
			return nil
		},
	}, passAll)
	kernel.RegisterFunc(opdef.Def{
		Name: "Snapshot", Doc: "Returns a copy of the input that later writes to a variable do not change.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name: "StopGradient", Doc: "Returns the input and blocks its gradient.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type"},
		Shape: opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name:  "PreventGradient",
		Doc:   "Returns the input. Differentiating through it is an error with the given message.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "message: string = ''"},
		Shape: opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name: "GuaranteeConst", Doc: "Returns the input and asserts that it never changes.",
		In:       []string{"input: T"},
		Out:      []string{"output: T"},
		Attrs:    []string{"T: type"},
		Stateful: true,
		Shape:    opdef.SameShape,
	}, guarantee)
	kernel.RegisterFunc(opdef.Def{
		Name: "DebugGradientIdentity", Doc: "Returns the input and marks it for gradient debugging.",
		In:                  []string{"input: T"},
		Out:                 []string{"output: T"},
		Attrs:               []string{"T: type"},
		AllowsUninitialized: true,
		Shape:               opdef.SameShape,
	}, pass)
	kernel.RegisterFunc(opdef.Def{
		Name: "DeepCopy", Doc: "Returns a copy of the input.",
		In:       []string{"x: T"},
		Out:      []string{"y: T"},
		Attrs:    []string{"T: type"},
		Stateful: true,
		Shape:    opdef.SameShape,
	}, func(ctx *kernel.Context) error {
		out, err := ctx.Input(0).Clone()
		if err == nil {
			ctx.SetOutput(0, out)
		}
		return err
	})
	kernel.RegisterNew(opdef.Def{
		Name: "EnsureShape", Doc: "Returns the input after a check that it is compatible with the given shape.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"shape: shape", "T: type"},
		Shape: ensureShape,
	}, newEnsureShape)
}

// pass forwards input 0 to output 0.
func pass(ctx *kernel.Context) error { return ctx.PassInput(0, 0) }

func passAll(ctx *kernel.Context) error {
	for i := range ctx.NumInputs() {
		if err := ctx.PassInput(i, i); err != nil {
			return err
		}
	}
	return nil
}

func ensureShape(c *opdef.ShapeContext) error {
	want := c.Attrs.Shape("shape")
	if want.RankKnown() {
		if _, err := opdef.WithRank(c.In[0], want.Rank()); err != nil {
			return err
		}
	}
	s, err := opdef.MergeShapes(want, c.In[0])
	c.SetAll(s)
	return err
}

func newEnsureShape(c *kernel.Construction) (kernel.Kernel, error) {
	want, name := c.Attrs.Shape("shape"), c.InputName(0)
	return kernel.Func(func(ctx *kernel.Context) error {
		if got := ctx.Input(0).Shape(); !want.CompatibleWith(got) {
			return status.InvalidArgumentf("Shape of tensor %s %v is not compatible with expected shape %v.",
				name, got, want)
		}
		return pass(ctx)
	}), nil
}

func guarantee(ctx *kernel.Context) error {
	if ctx.Input(0).DType() == tensor.Resource {
		return status.InvalidArgumentf("Input tensor cannot be a resource variable handle.")
	}
	return pass(ctx)
}
