package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Shape", Doc: "Returns the shape of the input as a vector.",
		In:    []string{"input: T"},
		Out:   []string{"output: out_type"},
		Attrs: []string{"T: type", "out_type: {int32, int64} = int32"},
		Shape: shapeShape,
	}, shapesOf)
	kernel.RegisterFunc(opdef.Def{
		Name: "ShapeN", Doc: "Returns the shapes of all inputs as vectors.",
		In:    []string{"input: N * T"},
		Out:   []string{"output: N * out_type"},
		Attrs: []string{"N: int >= 1", "T: type", "out_type: {int32, int64} = int32"},
		Shape: shapeShape,
	}, shapesOf)
	kernel.RegisterFunc(opdef.Def{
		Name: "Size", Doc: "Returns the number of elements of the input.",
		In:    []string{"input: T"},
		Out:   []string{"output: out_type"},
		Attrs: []string{"T: type", "out_type: {int32, int64} = int32"},
		Shape: opdef.ScalarShape,
	}, size)
	kernel.RegisterFunc(opdef.Def{
		Name: "Rank", Doc: "Returns the number of dimensions of the input.",
		In:    []string{"input: T"},
		Out:   []string{"output: int32"},
		Attrs: []string{"T: type"},
		Shape: opdef.ScalarShape,
	}, rank)
}

func shapeShape(c *opdef.ShapeContext) error {
	for i, s := range c.In {
		c.Out[i] = shapefn.Of(int64(s.Rank()))
	}
	return nil
}

func shapesOf(ctx *kernel.Context) error {
	for i := range ctx.NumInputs() {
		shape := ctx.Input(i).Shape()
		out, err := ctx.Allocate(i, tensor.Shape{int64(len(shape))})
		if err != nil {
			return err
		}
		for d, n := range shape {
			if out.DType() == tensor.Int32 && n > math.MaxInt32 {
				return status.InvalidArgumentf("Shape output type is 32-bit  but dim %d is %d", d, n)
			}
		}
		intarg.Set(out, shape)
	}
	return nil
}

func size(ctx *kernel.Context) error {
	n := int64(ctx.Input(0).NumElements())
	out, err := ctx.Allocate(0, nil)
	if err != nil {
		return err
	}
	if out.DType() == tensor.Int32 && n > math.MaxInt32 {
		return status.InvalidArgumentf("Number of elements was larger than representable by 32-bit output type")
	}
	intarg.Set(out, []int64{n})
	return nil
}

func rank(ctx *kernel.Context) error {
	out, err := ctx.Allocate(0, nil)
	if err == nil {
		intarg.Set(out, []int64{int64(ctx.Input(0).Rank())})
	}
	return err
}
