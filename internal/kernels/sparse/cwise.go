package sparse

import (
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, o := range []struct {
		name, doc string
		op        elementwise.Op
	}{
		{"SparseDenseCwiseAdd", "Adds a broadcast dense tensor to the elements of a sparse tensor.", elementwise.Add},
		{"SparseDenseCwiseMul", "Multiplies the elements of a sparse tensor by a broadcast dense tensor.", elementwise.Mul},
		{"SparseDenseCwiseDiv", "Divides the elements of a sparse tensor by a broadcast dense tensor.", elementwise.Div},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: o.name, Doc: o.doc,
				In: []string{"sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"}, Out: []string{"output: T"},
				Attrs: []string{numbers},
				Shape: func(c *opdef.ShapeContext) error {
					c.Out[0] = shapefn.Of(c.In[0].Dim(0))
					return shapefn.CheckRanks(c, 0, 2)
				},
			},
			Kernels: kernel.ForTypes("T", kernel.Stateless(func(ctx *kernel.Context) error { return cwise(ctx, o.op) }), typeset.Numbers...),
		})
	}
}

func checkCwise(indices, values, shape *tensor.Tensor) error {
	switch {
	case indices.Rank() != 2:
		return status.InvalidArgumentf("Input sp_indices should be a matrix but received shape: %v", indices.Shape())
	case values.Rank() != 1 || shape.Rank() != 1:
		return status.InvalidArgumentf("Inputs sp_values and sp_shape should be vectors but received shapes: %v and %v", values.Shape(), shape.Shape())
	case values.Dim(0) != indices.Dim(0):
		return status.InvalidArgumentf("The first dimension of values and indices should match. (%d vs. %d)", values.Dim(0), indices.Dim(0))
	case shape.Dim(0) != indices.Dim(1):
		return status.InvalidArgumentf("Number of dimensions must match second dimension of indices. Got %d dimensions, indices shape: %v", shape.Dim(0), indices.Shape())
	case shape.NumElements() == 0:
		return status.InvalidArgumentf("The shape argument requires at least one element.")
	}
	return nil
}

func cwise(ctx *kernel.Context, op elementwise.Op) error {
	values, dense := ctx.Input(1), ctx.Input(3)
	if err := checkCwise(ctx.Input(0), values, ctx.Input(2)); err != nil {
		return err
	}
	s, err := makeCOO(ctx.Input(0), values, intarg.Values(ctx.Input(2)))
	if err != nil {
		return err
	}
	whole, err := elementwise.Broadcast(s.shape, dense.Shape())
	if err != nil || !whole.Equal(s.shape) {
		return status.InvalidArgumentf("SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [%s] vs. [%s]",
			joined(s.shape, ","), joined(dense.Shape(), ","))
	}
	from := membudget.Make[int64](s.n)
	skip := s.rank - dense.Rank()
	for i := range from {
		if !s.inside(s.at(i)) {
			return status.InvalidArgumentf("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape")
		}
		for d, x := range s.at(i)[skip:] {
			if dense.Dim(d) == 1 {
				x = 0
			}
			from[i] = from[i]*int64(dense.Dim(d)) + x
		}
	}
	other, err := tensor.Alloc(dense.DType(), values.Shape())
	if err != nil {
		return err
	}
	defer other.Release()
	gather(&other, dense, from)
	if op == elementwise.Div && elementwise.HasZero(&other) {
		return status.InvalidArgumentf("SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero ")
	}
	out, err := ctx.Allocate(0, values.Shape())
	if err != nil {
		return err
	}
	gather(out, values, longs(s.n))
	elementwise.Accumulate(op, out, &other)
	return nil
}
