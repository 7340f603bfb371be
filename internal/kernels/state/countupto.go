package state

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "CountUpTo", Doc: "Increments a variable and returns its old value. Fails when the value reaches the limit.",
		In:    []string{"ref: Ref(T)"},
		Out:   []string{"output: T"},
		Attrs: []string{"limit: int", "T: {int32, int64}"},
		Shape: func(c *opdef.ShapeContext) error { return countShape(c, c.In[0]) },
	}, newCount)
	kernel.RegisterNew(opdef.Def{
		Name: "ResourceCountUpTo", Doc: "Increments a variable and returns its old value. Fails when the value reaches the limit.",
		In:       []string{"resource: resource"},
		Out:      []string{"output: T"},
		Attrs:    []string{"limit: int", "T: {int32, int64}"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			s, err := elemShape(c.InHandles[0], c.Attrs.Type("T"))
			if err != nil {
				return err
			}
			return countShape(c, s)
		},
	}, newCount)
}

func countShape(c *opdef.ShapeContext, s tensor.PartialShape) error {
	s, err := opdef.WithRank(s, 0)
	c.Out[0] = shapefn.Concat(s)
	return err
}

func newCount(c *kernel.Construction) (kernel.Kernel, error) {
	limit := int64(c.Attrs.Int("limit"))
	return kernel.Func(func(ctx *kernel.Context) error {
		v, err := target(ctx)
		if err != nil {
			return err
		}
		return v.Update(func(t *tensor.Tensor) error {
			if !t.Initialized() {
				return status.FailedPreconditionf("Attempting to use uninitialized value")
			}
			if t.Rank() != 0 {
				return status.InvalidArgumentf("input is not a scalar: %v", t.Shape())
			}
			n := intarg.Scalar(t)
			if n >= limit {
				return status.OutOfRangef("Reached limit of %d", limit)
			}
			out, err := ctx.Allocate(0, nil)
			if err != nil {
				return err
			}
			intarg.Set(out, []int64{n})
			own, err := ctx.Writable(t)
			if err == nil {
				intarg.Set(own, []int64{n + 1})
			}
			return err
		})
	}), nil
}
