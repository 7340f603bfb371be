package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Split", Doc: "Splits a tensor into num_split equal pieces along one dimension.",
		In:    []string{"split_dim: int32", "value: T"},
		Out:   []string{"output: num_split * T"},
		Attrs: []string{"num_split: int >= 1", "T: type"},
		Shape: splitShape,
	}, split)
	kernel.RegisterFunc(opdef.Def{
		Name: "SplitV",
		Doc: "Splits a tensor into pieces of the given sizes along one dimension. One size may be -1 for " +
			"the remaining elements.",
		In:    []string{"value: T", "size_splits: Tlen", "split_dim: int32"},
		Out:   []string{"output: num_split * T"},
		Attrs: []string{"num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = int64"},
		Shape: splitVShape,
	}, splitV)
}

func splitShape(c *opdef.ShapeContext) error {
	in := c.In[1]
	axis, known, err := shapefn.Axis(c, 0, in.Rank())
	if err != nil {
		return err
	}
	if !known {
		if in.RankKnown() {
			c.SetAll(tensor.UnknownDims(in.Rank()))
		}
		return nil
	}
	if in, err = opdef.WithRankAtLeast(in, axis+1); err != nil || !in.RankKnown() {
		return err
	}
	size, err := shapefn.Divide(in.Dim(axis), int64(len(c.Out)))
	if err != nil {
		return status.From(err).Annotate("\n\tNumber of ways to split should evenly divide the split dimension")
	}
	c.SetAll(shapefn.Replace(in, axis, size))
	return nil
}

func split(ctx *kernel.Context) error {
	axisTensor, in := ctx.Input(0), ctx.Input(1)
	if axisTensor.Rank() != 0 {
		return status.InvalidArgumentf("split_dim must be a scalar but has rank %d", axisTensor.Rank())
	}
	axis, err := splitAxis(intarg.Scalar(axisTensor), in)
	if err != nil {
		return err
	}
	n := int64(ctx.NumOutputs())
	if size := in.Shape()[axis]; size%n != 0 {
		return status.InvalidArgumentf("Number of ways to split should evenly divide the split dimension, but got split_dim %d "+
			"(size = %d) and num_split %d", axis, size, n)
	}
	if n == 1 {
		return ctx.PassInput(1, 0)
	}
	return splitInto(ctx, in, axis, slices.Clone(in.Shape()), func(int) int64 { return in.Shape()[axis] / n })
}

func splitAxis(given int64, in *tensor.Tensor) (int, error) {
	axis, ok := intarg.Axis(given, in.Rank())
	if !ok {
		return 0, status.InvalidArgumentf("-input rank(-%d) <= split_dim < input rank (%d), but got %d",
			in.Rank(), in.Rank(), given)
	}
	return axis, nil
}

func splitVShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	axis, known, err := shapefn.Axis(c, 2, in.Rank())
	if err != nil || !in.RankKnown() {
		return err
	}
	if in.Rank() == 0 {
		return status.InvalidArgumentf("Can't split scalars")
	}
	if !known {
		c.SetAll(tensor.UnknownDims(in.Rank()))
		return nil
	}
	if in, err = opdef.WithRankAtLeast(in, axis+1); err != nil {
		return err
	}
	t := c.Value(1)
	if t == nil {
		c.SetAll(shapefn.Replace(in, axis, shapefn.Unknown))
		return nil
	}
	if t.NumElements() != len(c.Out) { // before they are read, for there may be very many
		return status.InvalidArgumentf("Length of size_splits should be equal to num_outputs")
	}
	sizes, err := inferPieces(intarg.Values(t), in.Dim(axis))
	if err != nil {
		return err
	}
	for i, size := range sizes {
		c.Out[i] = shapefn.Replace(in, axis, size)
	}
	return nil
}

// inferPieces checks the sizes of the pieces of a dimension for the shape function. total is the
// dimension's size, which may be unknown.
func inferPieces(given []int64, total int64) ([]int64, error) {
	//sizedmake:ok an element for each output
	sizes := slices.Clone(given)
	sum, hole := int64(0), -1
	for i, size := range sizes {
		switch {
		case size != -1:
			sum += size
		case hole >= 0:
			return nil, status.InvalidArgumentf("size_splits can only have one -1")
		default:
			hole = i
		}
	}
	for i, size := range sizes {
		if size == -1 && total >= 0 {
			size = total - sum
		}
		if size < -1 || size == -1 && total >= 0 {
			return nil, status.InvalidArgumentf("Split size at index %d must be >= 0. Got: %d", i, size)
		}
		sizes[i] = size
	}
	if total >= 0 && (hole >= 0 && sum > total || hole < 0 && sum != total) {
		return nil, status.InvalidArgumentf("can't split axis of size %d into pieces of size [%s]", total, join(given))
	}
	return sizes, nil
}

func splitV(ctx *kernel.Context) error {
	in, sizesTensor, axisTensor := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if axisTensor.NumElements() != 1 {
		return status.InvalidArgumentf("split_dim_tensor must have exactly one element.")
	}
	if n := sizesTensor.NumElements(); sizesTensor.Rank() != 1 || n != ctx.NumOutputs() {
		return status.InvalidArgumentf("size of the split_tensor must be 1-D and have the same elements as outputs got %d -D and %d elements",
			sizesTensor.Rank(), n)
	}
	axis, err := splitAxis(intarg.Scalar(axisTensor), in)
	if err != nil {
		return err
	}
	//sizedmake:ok an element for each output
	sizes := slices.Clone(intarg.Values(sizesTensor))
	if err := resolvePieces(sizes, in.Shape()[axis]); err != nil {
		return err
	}
	if len(sizes) == 1 {
		return ctx.PassInput(0, 0)
	}
	return splitInto(ctx, in, axis, slices.Clone(in.Shape()), func(i int) int64 { return sizes[i] })
}

// resolvePieces checks the sizes of pieces and replaces -1.
func resolvePieces(sizes []int64, total int64) error {
	sum, hole := int64(0), -1
	for i, size := range sizes {
		switch {
		case size != -1:
			sum += size
		case hole >= 0:
			return status.InvalidArgumentf("There can only be one -1 in the input.")
		default:
			hole = i
		}
	}
	if hole < 0 && len(sizes) == 1 && sizes[0] != total {
		return status.InvalidArgumentf("If there is only one output, it must have the same size as the input. "+
			"Input size: %d output size: %d", total, sizes[0])
	}
	if hole < 0 && sum != total || hole >= 0 && sum > total {
		return status.InvalidArgumentf("Determined shape must either match input shape along split_dim exactly if fully specified, "+
			"or be less than the size of the input along split_dim if not fully specified.  Got: %d", sum)
	}
	if hole >= 0 {
		sizes[hole] = total - sum
	}
	for i, size := range sizes {
		if size < 0 {
			return status.InvalidArgumentf("Split size at index %d must be >= 0. Got: %d", i, size)
		}
	}
	return nil
}
