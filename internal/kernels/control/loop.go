package control

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	registerForward("Enter", "Makes a value available in iteration 0 of a new instance of the frame frame_name, or in all iterations if is_constant.",
		enterShape, "frame_name: string", "is_constant: bool = false", "parallel_iterations: int = 10")
	registerForward("Exit", "Makes a value available in the parent frame.", opdef.SameShape)
	registerForward("NextIteration", "Makes a value available in the next iteration of its frame.", opdef.SameShape)
	kernel.RegisterFunc(opdef.Def{
		Name: "LoopCond", Doc: "Forwards the condition of a loop and marks it for graph rewrites.",
		In: []string{"input: bool"}, Out: []string{"output: bool"}, Shape: scalarSame,
	}, first)
}

// registerForward registers an operation that forwards its input, and its version for references.
func registerForward(name, doc string, shape opdef.ShapeFn, attrs ...string) {
	attrs = append([]string{"T: type"}, attrs...)
	kernel.RegisterFunc(opdef.Def{
		Name: name, Doc: doc, In: []string{"data: T"}, Out: []string{"output: T"}, Attrs: attrs, Shape: shape,
	}, first)
	kernel.RegisterFunc(opdef.Def{
		Name: "Ref" + name, Doc: doc + " The value is a reference.",
		In: []string{"data: Ref(T)"}, Out: []string{"output: Ref(T)"}, Attrs: attrs, Shape: opdef.SameShape,
	}, first)
}

func first(ctx *kernel.Context) error { return pass(ctx, 0, 0) }

// enterShape infers the shape only of a value that is constant in all iterations.
func enterShape(c *opdef.ShapeContext) error {
	if c.Attrs.Bool("is_constant") {
		return opdef.SameShape(c)
	}
	c.OutHandles[0] = c.InHandles[0]
	return nil
}

func scalarSame(c *opdef.ShapeContext) error {
	out, err := opdef.WithRank(c.In[0], 0)
	c.Out[0] = out
	return err
}
