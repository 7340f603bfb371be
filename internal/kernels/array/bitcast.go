package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Bitcast",
		Doc: "Reinterprets the memory of a tensor as elements of another type without a copy. A smaller " +
			"type adds a dimension at the end; a larger type removes the last dimension.",
		In:  []string{"input: T"},
		Out: []string{"output: type"},
		Attrs: []string{
			"T: {bfloat16, float16, float32, float64, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
			"type: {bfloat16, float16, float32, float64, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
		},
		Shape: bitcastShape,
	}, newBitcast)
}

func bitcastShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	from, to := c.Attrs.Type("T").Size(), c.Attrs.Type("type").Size()
	if from == 0 || to == 0 {
		return status.InvalidArgumentf("Cannot bitcast types %v to %v because %s type size is zero.",
			c.Attrs.Type("T"), c.Attrs.Type("type"), map[bool]string{true: "input", false: "output"}[from == 0])
	}
	switch {
	case from == to || !in.RankKnown():
		if from == to {
			c.Out[0] = in
		}
	case from > to:
		c.Out[0] = shapefn.Concat(in, shapefn.Of(int64(from/to)))
	default:
		if _, err := opdef.WithRankAtLeast(in, 1); err != nil {
			return err
		}
		if n := in.Dim(-1); n >= 0 && n != int64(to/from) {
			return status.InvalidArgumentf("Cannot bitcast from %d to %d due to shape. %d does not match %d",
				c.Attrs.Type("T"), c.Attrs.Type("type"), n, to/from)
		}
		c.Out[0] = shapefn.Sub(in, 0, -1)
	}
	return nil
}

func newBitcast(c *kernel.Construction) (kernel.Kernel, error) {
	from, to := c.Attrs.Type("T"), c.Attrs.Type("type")
	if from.Size() == 0 || to.Size() == 0 {
		return nil, status.InvalidArgumentf("Bitcast from %v to %v is not possible", from, to)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		shape := slices.Clone(in.Shape())
		switch a, b := from.Size(), to.Size(); {
		case a > b:
			shape = append(shape, int64(a/b))
		case a < b:
			last := len(shape) - 1
			if last < 0 || shape[last] != int64(b/a) {
				return status.InvalidArgumentf("Cannot bitcast from %d to %d", from, to)
			}
			shape = shape[:last]
		}
		out, err := in.WithElements(to, shape)
		if err != nil {
			return err
		}
		*in = tensor.Tensor{}
		ctx.SetOutput(0, out)
		return nil
	}), nil
}
