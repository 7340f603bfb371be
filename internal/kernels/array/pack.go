package array

import (
	"slices"

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
		Name: "Pack", Doc: "Stacks tensors of one shape along a new dimension.",
		In:    []string{"values: N * T"},
		Out:   []string{"output: T"},
		Attrs: []string{"N: int >= 1", "T: type", "axis: int = 0"},
		Shape: packShape,
	}, newPack)
	kernel.RegisterNew(opdef.Def{
		Name: "Unpack", Doc: "Unpacks a tensor into its slices along one dimension, which is removed.",
		In:    []string{"value: T"},
		Out:   []string{"output: num * T"},
		Attrs: []string{"num: int >= 0", "T: type", "axis: int = 0"},
		Shape: unpackShape,
	}, newUnpack)
	kernel.RegisterNew(opdef.Def{
		Name: "ParallelConcat", Doc: "Concatenates tensors whose first dimension is 1 along that dimension.",
		In:    []string{"values: N * T"},
		Out:   []string{"output: T"},
		Attrs: []string{"N: int >= 1", "T: type", "shape: shape"},
		Shape: parallelConcatShape,
	}, newParallelConcat)
}

// packAxis returns the attribute axis, checked against a rank.
func packAxis(attrs opdef.Attrs, rank int) (int, error) {
	given := int64(attrs.Int("axis"))
	axis, ok := intarg.Axis(given, rank)
	if !ok {
		return 0, status.InvalidArgumentf("Invalid axis: %d; must be in [%d,%d)", given, -rank, rank)
	}
	return axis, nil
}

func packShape(c *opdef.ShapeContext) error {
	cur := c.In[len(c.In)-1]
	for i := len(c.In) - 2; i >= 0; i-- {
		var err error
		if cur, err = opdef.MergeShapes(c.In[i], cur); err != nil {
			return status.From(err).Annotate("\n\tFrom merging shape %d with other shapes.", i)
		}
	}
	if !cur.RankKnown() {
		return nil
	}
	axis, err := packAxis(c.Attrs, cur.Rank()+1)
	if err != nil {
		return err
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(cur, 0, axis), shapefn.Of(int64(len(c.In))), shapefn.From(cur, axis))
	return nil
}

func newPack(c *kernel.Construction) (kernel.Kernel, error) {
	given := int64(c.Attrs.Int("axis"))
	return kernel.Func(func(ctx *kernel.Context) error {
		ins := inputs(ctx, 0, ctx.NumInputs())
		first := ins[0].Shape()
		rank := len(first) + 1
		axis, ok := intarg.Axis(given, rank)
		if !ok {
			return status.InvalidArgumentf("axis = %d not in [%d, %d)", given, -rank, rank)
		}
		for i, in := range ins[1:] {
			if !in.Shape().Equal(first) {
				return status.InvalidArgumentf("Shapes of all inputs must match: values[0].shape = %v != values[%d].shape = %v",
					first, i+1, in.Shape())
			}
		}
		shape := slices.Insert(slices.Clone(first), axis, int64(len(ins)))
		if len(ins) == 1 {
			return ctx.PassInput(0, 0, shape...)
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		joinInto(out, ins, axis)
		return nil
	}), nil
}

func unpackShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	if !in.RankKnown() {
		return nil
	}
	axis, err := packAxis(c.Attrs, in.Rank())
	if err != nil {
		return err
	}
	if err := shapefn.CheckDim(in.Dim(axis), int64(len(c.Out))); err != nil {
		return err
	}
	c.SetAll(shapefn.Concat(shapefn.Sub(in, 0, axis), shapefn.From(in, axis+1)))
	return nil
}

func newUnpack(c *kernel.Construction) (kernel.Kernel, error) {
	given := int64(c.Attrs.Int("axis"))
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		shape := in.Shape()
		axis, ok := intarg.Axis(given, len(shape))
		if !ok {
			return status.InvalidArgumentf("axis = %d not in [%d, %d)", given, -len(shape), len(shape))
		}
		if shape[axis] != int64(ctx.NumOutputs()) {
			return status.InvalidArgumentf("Input shape axis %d must equal %d, got shape %v", axis, ctx.NumOutputs(), shape)
		}
		slice := slices.Delete(slices.Clone(shape), axis, axis+1)
		if ctx.NumOutputs() == 1 {
			return ctx.PassInput(0, 0, slice...)
		}
		return splitInto(ctx, in, axis, slice, func(int) int64 { return 1 })
	}), nil
}

// splitInto splits in along axis into the outputs of ctx. size returns the length of each piece in
// that axis. shape is the shape of a piece, with or without the axis. Contiguous pieces share the
// memory of in.
func splitInto(ctx *kernel.Context, in *tensor.Tensor, axis int, shape tensor.Shape, size func(i int) int64) error {
	outer, inner := int(in.Shape()[:axis].NumElements()), int(in.Shape()[axis+1:].NumElements())
	stride := in.Dim(axis) * inner
	if outer == 1 && in.DType().Size() > 0 && in.NumElements() > 0 {
		return splitShared(ctx, in, axis, shape, size)
	}
	at := 0
	for i := range ctx.NumOutputs() {
		n := int(size(i)) * inner
		if len(shape) == in.Rank() {
			shape[axis] = size(i)
		}
		out, err := ctx.Allocate(i, shape)
		if err != nil {
			return err
		}
		strided.CopyRows(out, strided.Rows{Stride: n}, in, strided.Rows{Offset: at, Stride: stride}, outer, n)
		at += n
	}
	return nil
}

// splitShared is splitInto for contiguous pieces.
func splitShared(ctx *kernel.Context, in *tensor.Tensor, axis int, shape tensor.Shape, size func(i int) int64) error {
	// If the pieces have the same shape except for their first dimension, flat has that shape, and
	// a piece is a range of its rows.
	flat, each, err := *in, int64(1), error(nil)
	sameShape := axis == 0 && len(shape) == in.Rank()
	if !sameShape {
		sameShape = len(shape) > 0 && len(shape) < in.Rank()
		if sameShape {
			each = shape[0]
			flat, err = in.WithShape(append(tensor.Shape{in.Shape()[axis] * each}, shape[1:]...))
		} else {
			flat, err = in.WithShape(tensor.Shape{in.Shape()[axis], in.Shape()[axis+1:].NumElements()})
		}
		if err != nil {
			return err
		}
	}
	at := 0
	for i := range ctx.NumOutputs() {
		n := int(size(i) * each)
		piece := flat.Rows(at, at+n)
		if !sameShape {
			if len(shape) == in.Rank() {
				shape[axis] = size(i)
			}
			if piece, err = piece.WithShape(shape); err != nil {
				return err
			}
		}
		ctx.SetOutput(i, piece.Retain())
		at += n
	}
	return nil
}

func parallelConcatShape(c *opdef.ShapeContext) error {
	shape := c.Attrs.Shape("shape")
	if !shapefn.Full(shape) {
		return status.InvalidArgumentf("shape attr must be fully defined.")
	}
	if shape.Rank() == 0 {
		return status.InvalidArgumentf("Out of range dim_index 0 for shape with 0 dimensions")
	}
	cur := shapefn.Replace(shape, 0, 1)
	for i, in := range c.In {
		switch {
		case !shapefn.Full(in):
			return status.InvalidArgumentf("All input shapes must be fully defined.")
		case in.Rank() < 1:
			return status.InvalidArgumentf("The rank of all input shapes must be greater than 0, but input %d had rank %d.",
				i, in.Rank())
		case in.Dim(0) != 1:
			return status.InvalidArgumentf("Size of first dimension must be 1.")
		}
		var err error
		if cur, err = opdef.MergeShapes(in, cur); err != nil {
			return status.From(err).Annotate("\n\tFrom merging shape %d with other shapes.", i)
		}
	}
	c.Out[0] = shape
	return nil
}

func newParallelConcat(c *kernel.Construction) (kernel.Kernel, error) {
	shape, ok := c.Attrs.Shape("shape").Full()
	if !ok || len(shape) == 0 {
		return nil, status.InvalidArgumentf("value should be at least rank 1.")
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		ins := inputs(ctx, 0, ctx.NumInputs())
		for _, in := range ins {
			if in.Rank() == 0 || !in.Shape()[1:].Equal(shape[1:]) || in.Dim(0) != 1 {
				return status.InvalidArgumentf("value and update shape doesn't match: %v vs. %v", shape, in.Shape())
			}
		}
		if shape[0] != int64(len(ins)) {
			return status.InvalidArgumentf("%d values for %d rows", len(ins), shape[0])
		}
		out, err := ctx.Allocate(0, shape)
		if err != nil {
			return err
		}
		joinInto(out, ins, 0)
		return nil
	}), nil
}
