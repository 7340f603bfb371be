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
	kernel.RegisterFunc(opdef.Def{
		Name: "Slice",
		Doc: "Returns a slice with size[i] elements from begin[i] on in each dimension i. A size of -1 " +
			"extends to the end.",
		In:    []string{"input: T", "begin: Index", "size: Index"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Index: {int32, int64}"},
		Shape: sliceShape,
	}, slice)
}

func sliceShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 1, 1); err != nil {
		return err
	}
	args, err := opdef.MergeShapes(c.In[1], c.In[2])
	if err != nil {
		return err
	}
	in := c.In[0]
	if n := args.Dim(0); n >= 0 {
		if in, err = opdef.WithRank(in, int(n)); err != nil {
			return err
		}
	}
	begin, beginKnown := shapefn.Ints(c, 1)
	size, sizeKnown := shapefn.Ints(c, 2)
	if !sizeKnown {
		if partial := c.ValueAsShape(2); partial.RankKnown() {
			c.Out[0] = partial
		} else if in.RankKnown() {
			c.Out[0] = tensor.UnknownDims(in.Rank())
		}
		return nil
	}
	dims := slices.Clone(size)
	for i, n := range size {
		if n != -1 {
			continue
		}
		dims[i] = shapefn.Unknown
		if beginKnown {
			if dims[i], err = shapefn.Minus(in.Dim(i), begin[i]); err != nil {
				return err
			}
		}
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func slice(ctx *kernel.Context) error {
	in := ctx.Input(0)
	begins, sizes, err := sliceBounds(in.Shape(), ctx.Input(1), ctx.Input(2))
	if err != nil {
		return err
	}
	if in.Shape().Equal(sizes) {
		return ctx.PassInput(0, 0)
	}
	v := strided.Of(in.Shape())
	for i, b := range begins {
		v.Slice(i, int(b), int(sizes[i]), 1)
	}
	return copyView(ctx, in, v, sizes)
}

// sliceBounds checks the arguments of Slice and replaces the sizes of -1.
func sliceBounds(shape tensor.Shape, begin, size *tensor.Tensor) (begins []int64, sizes tensor.Shape, err error) {
	if begin.Rank() != 1 || size.Rank() != 1 || begin.NumElements() != len(shape) || size.NumElements() != len(shape) {
		return nil, nil, status.InvalidArgumentf("Expected begin and size arguments to be 1-D tensors of size %d, "+
			"but got shapes %v and %v instead.", len(shape), begin.Shape(), size.Shape())
	}
	//sizedmake:ok an element for each dimension
	begins, sizes = intarg.Values(begin), slices.Clone(intarg.Values(size))
	for i, dim := range shape {
		b, s := begins[i], sizes[i]
		if s == -1 {
			s = dim - b
		}
		switch {
		case dim == 0 && (b != 0 || s != 0):
			return nil, nil, status.InvalidArgumentf(
				"Expected begin[%d] == 0 (got %d) and size[%d] == 0 (got %d) when input.dim_size(%d) == 0", i, b, i, s, i)
		case b < 0 || b > dim:
			return nil, nil, status.InvalidArgumentf("Expected begin[%d] in [0, %d], but got %d", i, dim, b)
		case s < 0 || b+s > dim:
			return nil, nil, status.InvalidArgumentf("Expected size[%d] in [0, %d], but got %d", i, dim-b, s)
		}
		sizes[i] = s
	}
	return begins, sizes, nil
}
