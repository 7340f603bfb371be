package function

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	ifAttrs := func(least string, more ...string) []string {
		return append([]string{
			"Tcond: type", "Tin: list(type) >= " + least, "Tout: list(type) >= " + least, "then_branch: func", "else_branch: func",
		}, more...)
	}
	registerIf := func(name, doc string, attrs []string, stateful bool) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"cond: Tcond", "input: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs,
			Shape: branchShape, Stateful: stateful,
		}, newIf)
	}
	withShapes := ifAttrs("0", "output_shapes: list(shape) = []")
	registerIf("If", "Calls then_branch if cond is true and else_branch otherwise.", withShapes, true)
	registerIf("StatelessIf", "Calls then_branch if cond is true and else_branch otherwise. Both are stateless.", withShapes, false)
	registerIf("_If", "Calls then_branch if cond is true and else_branch otherwise. The older form of If.", ifAttrs("1"), true)

	registerCase := func(name, doc string, stateful bool) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"branch_index: int32", "input: Tin"}, Out: []string{"output: Tout"},
			Attrs: []string{
				"Tin: list(type) >= 0", "Tout: list(type) >= 0", "branches: list(func) >= 1", "output_shapes: list(shape) = []",
			},
			Shape: branchShape, Stateful: stateful,
		}, newCase)
	}
	registerCase("Case", "Calls the branch at branch_index, or the last one if the index is out of range.", true)
	registerCase("StatelessCase", "Calls the branch at branch_index, or the last one if the index is out of range. All are stateless.", false)
}

// branchShape is the shape function of nodes with an attribute for their output shapes.
func branchShape(c *opdef.ShapeContext) error {
	shapes := c.Attrs.Shapes("output_shapes")
	if len(shapes) == 0 {
		return nil
	}
	if len(shapes) != len(c.Out) {
		return status.InvalidArgumentf("`output_shapes` must be the same length as num outputs (%d vs. %d", len(shapes), len(c.Out))
	}
	copy(c.Out, shapes)
	return nil
}

func newIf(c *kernel.Construction) (kernel.Kernel, error) {
	onTrue, err := instantiate(c, c.Attrs.Func("then_branch"))
	if err != nil {
		return nil, err
	}
	onFalse, err := instantiate(c, c.Attrs.Func("else_branch"))
	if err != nil {
		return nil, err
	}
	return &selected{skip: 1, choose: func(ctx *kernel.Context) (kernel.Function, error) {
		holds, err := truth(ctx.Input(0))
		if holds {
			return onTrue, err
		}
		return onFalse, err
	}}, nil
}

func newCase(c *kernel.Construction) (kernel.Kernel, error) {
	var branches []kernel.Function
	for _, fn := range c.Attrs.Funcs("branches") {
		f, err := instantiate(c, fn)
		if err != nil {
			return nil, err
		}
		branches = append(branches, f)
	}
	return &selected{skip: 1, choose: func(ctx *kernel.Context) (kernel.Function, error) {
		in := ctx.Input(0)
		if in.Rank() > 0 {
			return nil, status.InvalidArgumentf("branch_index must be scalar")
		}
		i := int(tensor.Value[int32](in))
		if i < 0 || i >= len(branches) {
			i = len(branches) - 1
		}
		return branches[i], nil
	}}, nil
}
