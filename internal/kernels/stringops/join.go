package stringops

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
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
	parts := membudget.Make[[]string](ctx.NumInputs()) // one part for a scalar
	for j := range parts {
		parts[j] = tensor.Values[string](ctx.Input(j))
	}
	b := newBuilder(dst)
	element := func(j, i int) string {
		if ctx.Input(j).Rank() == 0 {
			i = 0
		}
		return parts[j][i]
	}
	for i := range dst {
		size := len(separator) * max(0, len(parts)-1)
		for j := range parts {
			size += len(element(j, i))
		}
		if size >= blockSize { // the buffer would grow with it
			b.joined(size, separator, len(parts), func(j int) string { return element(j, i) })
			continue
		}
		for j := range parts {
			if j > 0 {
				//sizedmake:ok less than blockSize
				b.buf = append(b.buf, separator...)
			}
			//sizedmake:ok less than blockSize
			b.buf = append(b.buf, element(j, i)...)
		}
		b.next()
	}
	b.flush()
}
