package array

import (
	"strconv"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Concat", Doc: "Concatenates tensors along dimension concat_dim.",
		In:    []string{"concat_dim: int32", "values: N * T"},
		Out:   []string{"output: T"},
		Attrs: []string{"N: int >= 2", "T: type"},
		Shape: func(c *opdef.ShapeContext) error { return concatShape(c, 1, len(c.In), 0) },
	}, func(ctx *kernel.Context) error { return concat(ctx, "concat_dim", 0, 1, ctx.NumInputs()) })
	kernel.RegisterFunc(opdef.Def{
		Name: "ConcatV2", Doc: "Concatenates tensors along dimension axis.",
		In:    []string{"values: N * T", "axis: Tidx"},
		Out:   []string{"output: T"},
		Attrs: []string{"N: int >= 2", "T: type", "Tidx: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error { return concatShape(c, 0, len(c.In)-1, len(c.In)-1) },
	}, func(ctx *kernel.Context) error { return concat(ctx, "axis", ctx.NumInputs()-1, 0, ctx.NumInputs()-1) })
	kernel.RegisterFunc(opdef.Def{
		Name:  "ConcatOffset",
		Doc:   "Returns the offset of each tensor of the given shapes in their concatenation.",
		In:    []string{"concat_dim: int32", "shape: N * shape_type"},
		Out:   []string{"offset: N * shape_type"},
		Attrs: []string{"N: int >= 2", "shape_type: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			copy(c.Out, c.In[1:])
			return nil
		},
	}, concatOffset)
}

func concatShape(c *opdef.ShapeContext, lo, hi, axisInput int) error {
	if err := shapefn.CheckRanks(c, axisInput, 0); err != nil {
		return err
	}
	axis, known := c.ScalarValue(axisInput)
	if !known {
		return concatUnknownAxis(c, lo, hi)
	}
	least := int(axis) + 1
	if axis < 0 {
		least = int(-axis)
	}
	rank := knownRank(c.In[lo:hi])
	var out shapefn.Shape
	for i := hi - 1; i >= lo; i-- {
		in, err := c.In[i], error(nil)
		if rank >= 0 {
			in, err = opdef.WithRank(in, rank)
		}
		if err == nil {
			in, err = opdef.WithRankAtLeast(in, least)
		}
		if err != nil {
			return err
		}
		if out, err = joinShapes(in, out, int(axis), i == hi-1); err != nil {
			return err
		}
	}
	c.Out[0] = out
	return nil
}

// knownRank returns the first known rank, or -1 if there is none.
func knownRank(in []shapefn.Shape) int {
	for _, s := range in {
		if s.RankKnown() {
			return s.Rank()
		}
	}
	return -1
}

// joinShapes returns the shape of in concatenated along axis with the tensors after it, whose joint
// shape is rest.
func joinShapes(in, rest shapefn.Shape, axis int, last bool) (shapefn.Shape, error) {
	if last {
		return in, nil
	}
	if !in.RankKnown() || !rest.RankKnown() {
		return shapefn.Shape{}, nil
	}
	before, err := opdef.MergeShapes(shapefn.Sub(in, 0, axis), shapefn.Sub(rest, 0, axis))
	if err != nil {
		return before, err
	}
	at, at2 := axis, axis
	if axis < 0 {
		at, at2 = axis+in.Rank(), axis+rest.Rank()
	}
	after, err := opdef.MergeShapes(shapefn.From(in, at+1), shapefn.From(rest, at2+1))
	if err != nil {
		return after, err
	}
	return shapefn.Concat(before, shapefn.Of(shapefn.Add(in.Dim(axis), rest.Dim(axis))), after), nil
}

func concatUnknownAxis(c *opdef.ShapeContext, lo, hi int) error {
	rank := knownRank(c.In[lo:hi])
	if rank < 0 {
		return nil
	}
	if rank == 0 {
		return status.InvalidArgumentf("Can't concatenate scalars (use tf.stack instead)")
	}
	for i := lo; i < hi; i++ {
		if _, err := opdef.WithRank(c.In[i], rank); err != nil {
			return err
		}
	}
	c.Out[0] = tensor.UnknownDims(rank)
	return nil
}

func concat(ctx *kernel.Context, argument string, axisInput, lo, hi int) error {
	axisTensor := ctx.Input(axisInput)
	if axisTensor.NumElements() != 1 || axisTensor.Rank() > 1 {
		return status.InvalidArgumentf("%s tensor should be a scalar integer, but got shape %v", argument, axisTensor.Shape())
	}
	ins := inputs(ctx, lo, hi)
	first := ins[0].Shape()
	given := intarg.Scalar(axisTensor)
	axis, ok := intarg.Axis(given, len(first))
	if !ok && (given != 0 || len(first) > 0) {
		return status.InvalidArgumentf("ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %d",
			-len(first), len(first), given)
	}
	total, err := checkConcat(ins, axis)
	if err != nil {
		return err
	}
	shape := append(tensor.Shape{}, first...)
	shape[axis] = total
	if only := onlyNonEmpty(ins); only >= 0 {
		return ctx.PassInput(lo+only, 0, shape...)
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	joinInto(out, ins, axis)
	return nil
}

func checkConcat(ins []*tensor.Tensor, axis int) (total int64, err error) {
	first := ins[0].Shape()
	for i, in := range ins {
		if in.Rank() == 0 {
			return 0, status.InvalidArgumentf("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
		}
		if in.Rank() != len(first) {
			return 0, status.InvalidArgumentf("ConcatOp : Ranks of all input tensors should match: shape[0] = %v vs. shape[%d] = %v",
				first, i, in.Shape())
		}
		for j, d := range in.Shape() {
			if j != axis && d != first[j] {
				return 0, status.InvalidArgumentf(
					"ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %v vs. shape[%d] = %v", j, first, i, in.Shape())
			}
		}
		total += in.Shape()[axis]
	}
	return total, nil
}

// onlyNonEmpty returns the index of the only non-empty tensor, or -1 if there is not exactly one.
func onlyNonEmpty(ins []*tensor.Tensor) int {
	only := -1
	for i, in := range ins {
		if in.NumElements() == 0 {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = i
	}
	return only
}

// joinInto concatenates tensors along axis into out.
func joinInto(out *tensor.Tensor, ins []*tensor.Tensor, axis int) {
	outer := int(out.Shape()[:axis].NumElements())
	if out.NumElements() == 0 {
		return
	}
	width := out.NumElements() / outer
	at := 0
	for _, in := range ins {
		n := in.NumElements() / outer
		strided.CopyRows(out, strided.Rows{Offset: at, Stride: width}, in, strided.Rows{Stride: n}, outer, n)
		at += n
	}
}

func concatOffset(ctx *kernel.Context) error {
	axisTensor := ctx.Input(0)
	if axisTensor.Rank() != 0 {
		return status.InvalidArgumentf("Concat dim tensor should be a scalar integer, but got shape %v", axisTensor.Shape())
	}
	given := intarg.Scalar(axisTensor)
	first := intarg.Values(ctx.Input(1))
	axis, ok := intarg.Axis(given, len(first))
	if !ok {
		return status.InvalidArgumentf("Concat dim is out of range: %d vs. %d", given, len(first))
	}
	at := int64(0)
	for i := 1; i < ctx.NumInputs(); i++ {
		in := ctx.Input(i)
		if in.Rank() != 1 {
			return status.InvalidArgumentf("input %d should be a vector, but got shape %v", i, in.Shape())
		}
		dims := intarg.Values(in)
		if len(dims) != len(first) {
			return status.InvalidArgumentf("input %d should contain %d elements, but got %d", i-1, len(first), len(dims))
		}
		for j, d := range dims {
			if j != axis && d != first[j] {
				return status.InvalidArgumentf("All dimensions except %d must match. Input %d has shape [%s] and doesn't match "+
					"input 0 with shape [%s].", axis, i-1, summary(dims), summary(first))
			}
		}
		out, err := ctx.AllocateZeros(i-1, in.Shape())
		if err != nil {
			return err
		}
		offset := membudget.Make[int64](len(dims))
		offset[axis] = at
		intarg.Set(out, offset)
		at += dims[axis]
	}
	return nil
}

// summary formats at most ten values, separated by spaces.
func summary(dims []int64) string {
	var b []byte
	for i, d := range dims {
		if i == 10 {
			return string(b) + "..."
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	return string(b)
}
