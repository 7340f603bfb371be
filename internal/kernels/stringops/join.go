package stringops

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringJoin", Doc: "Joins the strings at the same position of all inputs. Scalars are broadcast.",
		In:    []string{"inputs: N * string"},
		Out:   []string{"output: string"},
		Attrs: []string{"N: int >= 0", "separator: string = ''"},
		Shape: joinShape,
	}, newJoin)
}

func joinShape(c *opdef.ShapeContext) error {
	scalars, out := true, tensor.PartialShape{}
	for _, in := range c.In {
		scalars = scalars && in.Rank() == 0
		if in.Rank() <= 0 {
			continue
		}
		var err error
		if out, err = opdef.MergeShapes(out, in); err != nil {
			return err
		}
	}
	if scalars {
		out = tensor.MakePartial()
	}
	c.SetAll(out)
	return nil
}

func newJoin(c *kernel.Construction) (kernel.Kernel, error) {
	separator := c.Attrs.String("separator")
	return kernel.Func(func(ctx *kernel.Context) error {
		shape := tensor.Shape{}
		for i := range ctx.NumInputs() {
			s := ctx.Input(i).Shape()
			if len(s) > 0 && len(shape) == 0 {
				shape = s
			}
			if len(s) > 0 && !s.Equal(shape) {
				return status.InvalidArgumentf("Input shapes do not match: %v vs. %v", shape, s)
			}
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		joinEach(ctx, tensor.Values[string](out), separator)
		return nil
	}), nil
}

func joinEach(ctx *kernel.Context, dst []string, separator string) {
	parts := make([][]string, ctx.NumInputs()) // one part for a scalar
	for j := range parts {
		parts[j] = tensor.Values[string](ctx.Input(j))
	}
	b := newBuilder(dst)
	for i := range dst {
		for j, part := range parts {
			if j > 0 {
				b.buf = append(b.buf, separator...)
			}
			if ctx.Input(j).Rank() == 0 {
				b.buf = append(b.buf, part[0]...)
			} else {
				b.buf = append(b.buf, part[i]...)
			}
		}
		b.next()
	}
	b.flush()
}
