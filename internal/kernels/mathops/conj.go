package mathops

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// conjugator is implemented by variant values with a complex conjugate, such as sparse matrices.
type conjugator interface{ Conj() (any, error) }

func conjShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[0]
	if len(c.InHandles) > 0 && len(c.OutHandles) > 0 {
		c.OutHandles[0] = c.InHandles[0]
	}
	return nil
}

func conjVariants(ctx *kernel.Context) error {
	out, err := ctx.AllocateLike(0, ctx.Input(0))
	if err != nil {
		return err
	}
	dst := tensor.Values[tensor.VariantValue](out)
	for i, v := range tensor.Values[tensor.VariantValue](ctx.Input(0)) {
		c, ok := v.Value.(conjugator)
		if !ok {
			return status.Internalf("No unary variant unary_op function found for op CONJ Variant type_name: %T", v.Value)
		}
		if dst[i].Value, err = c.Conj(); err != nil {
			return err
		}
	}
	return nil
}
