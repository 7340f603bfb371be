package array

import (
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StridedSlice",
		Doc: "Returns a strided slice: every strides[i]-th element from begin[i] to before end[i] in " +
			"each dimension. The masks mark entries that cover whole dimensions, an ellipsis, a new " +
			"dimension, or a single index.",
		In:  []string{"input: T", "begin: Index", "end: Index", "strides: Index"},
		Out: []string{"output: T"},
		Attrs: []string{
			"T: type",
			"Index: {int16, int32, int64}",
			"begin_mask: int = 0",
			"end_mask: int = 0",
			"ellipsis_mask: int = 0",
			"new_axis_mask: int = 0",
			"shrink_axis_mask: int = 0",
		},
		Shape: stridedSliceShape,
	}, newStridedSlice)
	kernel.RegisterNew(opdef.Def{
		Name: "StridedSliceGrad",
		Doc: "Computes the gradient of StridedSlice: dy at the position of the slice in a tensor of " +
			"zeros.",
		In:    []string{"shape: Index", "begin: Index", "end: Index", "strides: Index", "dy: T"},
		Out:   []string{"output: T"},
		Attrs: strided.SliceAttrs(),
		Shape: func(c *opdef.ShapeContext) error {
			s, err := shapefn.Input(c, 0)
			c.SetAll(s)
			return err
		},
	}, newStridedSliceGrad)
	kernel.RegisterNew(opdef.Def{
		Name: "TensorStridedSliceUpdate", Doc: "Returns a copy of input with a strided slice replaced by value.",
		In:    []string{"input: T", "begin: Index", "end: Index", "strides: Index", "value: T"},
		Out:   []string{"output: T"},
		Attrs: strided.SliceAttrs(),
		Shape: opdef.SameShape,
	}, newTensorStridedSliceUpdate)
}

func stridedSliceShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 1, 1, 1); err != nil {
		return err
	}
	args, err := opdef.MergeShapes(c.In[1], c.In[2])
	if err != nil {
		return err
	}
	if args, err = opdef.MergeShapes(args, c.In[3]); err != nil {
		return err
	}
	strides := c.Value(3)
	if !c.In[0].RankKnown() || args.Dim(0) < 0 || strides == nil {
		return nil
	}
	spec, err := strided.ParseSpec(c.In[0], c.Value(1), c.Value(2), strides, strided.MasksOf(c.Attrs))
	if err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(spec.Final...)
	if len(c.InHandles) > 0 {
		c.OutHandles[0] = c.InHandles[0]
	}
	return nil
}

func newStridedSlice(c *kernel.Construction) (kernel.Kernel, error) {
	masks := strided.MasksOf(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		spec, err := strided.ParseSpec(in.Shape().Partial(), ctx.Input(1), ctx.Input(2), ctx.Input(3), masks)
		if err != nil {
			return err
		}
		if spec.Identity(in.Shape()) {
			return ctx.PassInput(0, 0, append(tensor.Shape{}, spec.Final...)...)
		}
		return copyView(ctx, in, spec.View(in.Shape()), spec.Shape())
	}), nil
}

func newStridedSliceGrad(c *kernel.Construction) (kernel.Kernel, error) {
	masks := strided.MasksOf(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		shapeTensor, dy := ctx.Input(0), ctx.Input(4)
		if shapeTensor.Rank() != 1 {
			return status.InvalidArgumentf("shape must be 1-D, got shape.shape = %v", shapeTensor.Shape())
		}
		shape, err := intarg.Shape(intarg.Values(shapeTensor))
		if err != nil {
			return err
		}
		spec, err := strided.ParseSpec(shape.Partial(), ctx.Input(1), ctx.Input(2), ctx.Input(3), masks)
		if err != nil {
			return err
		}
		if !dy.Shape().Equal(spec.Shape()) {
			return status.InvalidArgumentf("shape of dy was %v instead of %v", dy.Shape(), spec.Shape())
		}
		if spec.Identity(shape) {
			return ctx.PassInput(4, 0, append(tensor.Shape{}, shape...)...)
		}
		out, err := ctx.AllocateZeros(0, shape)
		if err != nil {
			return err
		}
		return spec.Set(out, dy)
	}), nil
}

func newTensorStridedSliceUpdate(c *kernel.Construction) (kernel.Kernel, error) {
	masks := strided.MasksOf(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		spec, err := strided.ParseSpec(in.Shape().Partial(), ctx.Input(1), ctx.Input(2), ctx.Input(3), masks)
		if err != nil {
			return err
		}
		if spec.Shape().NumElements() == 0 { // TensorFlow does not check the value here
			return ctx.PassInput(0, 0)
		}
		out, err := owned(in)
		if err != nil {
			return err
		}
		if err := spec.Set(&out, ctx.Input(4)); err != nil {
			out.Release()
			return err
		}
		ctx.SetOutput(0, out)
		return nil
	}), nil
}
