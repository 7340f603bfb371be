package control

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Merge", Doc: "Forwards the first of the inputs that is available, with its index.",
		In: []string{"inputs: N * T"}, Out: []string{"output: T", "value_index: int32"},
		Attrs: []string{"T: type", "N: int >= 1"}, Shape: mergeShape,
	}, merge)
	kernel.RegisterFunc(opdef.Def{
		Name: "RefMerge", Doc: "Forwards the first of the references that is available, with its index.",
		In: []string{"inputs: Ref(N * T)"}, Out: []string{"output: Ref(T)", "value_index: int32"},
		Attrs: []string{"T: type", "N: int >= 1"}, Shape: mergeShape,
	}, merge)
}

// mergeShape keeps the dimensions on which all inputs agree.
func mergeShape(c *opdef.ShapeContext) error {
	c.Out[1] = tensor.MakePartial()
	for _, in := range c.In {
		if !in.RankKnown() || in.Rank() != c.In[0].Rank() {
			return nil
		}
	}
	dims := membudget.Make[int64](c.In[0].Rank())
	for d := range dims {
		dims[d] = c.In[0].Dim(d)
		for _, in := range c.In[1:] {
			if in.Dim(d) != dims[d] {
				dims[d] = -1
			}
		}
	}
	c.Out[0] = tensor.MakePartial(dims...)
	return nil
}

func merge(ctx *kernel.Context) error {
	for i := range ctx.NumInputs() {
		if ctx.InputRef(i) != nil || ctx.Input(i).Initialized() {
			ctx.SetOutput(1, tensor.Scalar(int32(i)))
			return pass(ctx, i, 0)
		}
	}
	ctx.Dead = true
	return nil
}
