package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Tile", Doc: "Repeats a tensor multiples[i] times along each dimension i.",
		In:    []string{"input: T", "multiples: Tmultiples"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tmultiples: {int32, int64} = int32"},
		Shape: tileShape,
	}, tile)
	kernel.RegisterFunc(opdef.Def{
		Name: "BroadcastTo", Doc: "Broadcasts a tensor to the given shape by NumPy's rules.",
		In:    []string{"input: T", "shape: Tidx"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tidx: {int32, int64} = int32"},
		Shape: broadcastToShape,
	}, broadcastTo)
}

func tileShape(c *opdef.ShapeContext) error {
	multiples, err := shapefn.Input(c, 1)
	if err != nil {
		return err
	}
	in := c.In[0]
	if in.RankKnown() {
		if multiples, err = opdef.WithRank(multiples, in.Rank()); err != nil {
			return err
		}
		if _, err := opdef.MergeShapes(c.In[1], shapefn.Of(int64(in.Rank()))); err != nil {
			return err
		}
	}
	if !multiples.RankKnown() {
		return nil
	}
	if in, err = opdef.WithRank(in, multiples.Rank()); err != nil {
		return err
	}
	dims := in.Dims()
	for i, d := range dims {
		dims[i] = shapefn.Times(d, multiples.Dim(i))
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

func tile(ctx *kernel.Context) error {
	in, multiples := ctx.Input(0), ctx.Input(1)
	if multiples.Rank() != 1 {
		return status.InvalidArgumentf("Expected multiples to be 1-D, but got shape %v", multiples.Shape())
	}
	if multiples.NumElements() != in.Rank() {
		return status.InvalidArgumentf("Expected multiples argument to be a vector of length %d but got length %d",
			in.Rank(), multiples.NumElements())
	}
	shape := slices.Clone(in.Shape())
	times := intarg.Values(multiples)
	for i, n := range times {
		if n < 0 {
			return status.InvalidArgumentf("Expected multiples[%d] >= 0, but got %d", i, n)
		}
		if d := shape[i]; d > 0 && n > (1<<62)/d {
			return status.InvalidArgumentf("Shape %v has too many elements", shape)
		}
		shape[i] *= n
	}
	if shape.Equal(in.Shape()) {
		return ctx.PassInput(0, 0)
	}
	// Each dimension becomes two; the outer one is the repetition.
	v := strided.View{}
	plain := strided.Of(in.Shape())
	for i, d := range plain.Dims {
		//sizedmake:ok dimensions
		v.Dims, v.Strides = append(v.Dims, int(times[i]), d), append(v.Strides, 0, plain.Strides[i])
	}
	return copyView(ctx, in, v, shape)
}

func broadcastToShape(c *opdef.ShapeContext) error {
	out, err := shapefn.Input(c, 1)
	if err != nil {
		return err
	}
	in := c.In[0]
	c.Out[0] = out
	if !out.RankKnown() || !in.RankKnown() {
		return nil
	}
	if in, err = opdef.WithRankAtMost(in, out.Rank()); err != nil {
		return err
	}
	for i := 1; i <= in.Rank(); i++ {
		if in.Dim(-i) <= 1 {
			continue
		}
		d, err := opdef.MergeDims(in.Dim(-i), out.Dim(-i))
		if err != nil {
			return err
		}
		out = shapefn.Replace(out, -i, d)
	}
	c.Out[0] = out
	return nil
}

func broadcastTo(ctx *kernel.Context) error {
	in, dims := ctx.Input(0), ctx.Input(1)
	if dims.Rank() != 1 {
		return status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape %v", dims.Shape())
	}
	shape, err := intarg.Shape(membudget.AppendAll(nil, intarg.Values(dims)...))
	if err != nil {
		return err
	}
	if shape.Equal(in.Shape()) {
		return ctx.PassInput(0, 0)
	}
	if in.Rank() > len(shape) {
		return status.InvalidArgumentf("Rank of input (%d) must be no greater than rank of output shape (%d).",
			in.Rank(), len(shape))
	}
	both, err := elementwise.Broadcast(in.Shape(), shape)
	if err != nil {
		return err
	}
	if !both.Equal(shape) {
		return status.InvalidArgumentf("Unable to broadcast tensor of shape %v to tensor of shape %v", in.Shape(), shape)
	}
	return copyView(ctx, in, strided.Of(in.Shape()).Broadcast(strided.Of(shape).Dims), shape)
}
