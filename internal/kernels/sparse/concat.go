package sparse

import (
	"math/bits"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "SparseConcat", Doc: "Concatenates sparse tensors along a dimension.",
		In:    []string{"indices: N * int64", "values: N * T", "shapes: N * int64"},
		Out:   []string{"output_indices: int64", "output_values: T", "output_shape: int64"},
		Attrs: []string{"concat_dim: int", "N: int >= 2", "T: type"},
		Shape: concatShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		axis, n := c.Attrs.Int("concat_dim"), c.Attrs.Int("N")
		return kernel.Func(func(ctx *kernel.Context) error { return concat(ctx, axis, n) }), nil
	})
}

func concatShape(c *opdef.ShapeContext) (err error) {
	n := len(c.In) / 3
	count, rank, shape := int64(0), shapefn.Unknown, shapefn.Shape{}
	for i := range n {
		for j, want := range []int{2, 1, 1} {
			if _, err := opdef.WithRank(c.In[i+j*n], want); err != nil {
				return err
			}
		}
		rows, err := opdef.MergeDims(c.In[i].Dim(0), c.In[i+n].Dim(0))
		if err != nil {
			return err
		}
		count = shapefn.Add(count, rows)
		if rank, err = opdef.MergeDims(rank, c.In[i].Dim(1)); err != nil {
			return err
		}
		if shape, err = opdef.MergeShapes(shape, c.In[i+2*n]); err != nil {
			return err
		}
	}
	c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(count, rank), shapefn.Of(count), shape
	return nil
}

func concat(ctx *kernel.Context, attr, n int) error {
	if err := checkConcat(ctx, n); err != nil {
		return err
	}
	parts, dims := membudget.Make[*coo](n), membudget.Make[tensor.Shape](n)
	for i := range dims {
		dims[i] = intarg.Values(ctx.Input(i + 2*n))
	}
	rank := len(dims[0])
	axis, ok := intarg.Axis(int64(attr), rank)
	if !ok {
		return status.InvalidArgumentf("Concat dimension must be in range [%d, %d), got %d", -rank, rank, attr)
	}
	shape, err := concatenatedShape(dims, axis)
	if err != nil {
		return err
	}
	if !anyRows(ctx, n) { // TensorFlow skips the remaining checks
		return putEmpty(ctx, shape)
	}
	for i := range parts {
		if parts[i], err = makeCOO(ctx.Input(i), ctx.Input(i+n), dims[i]); err != nil {
			return err
		}
	}
	whole, err := joinParts(parts, shape, axis)
	if err != nil {
		return err
	}
	defer whole.values.Release()
	order, err := whole.sorted(ctx.Context(), span(whole.rank))
	if err != nil {
		return err
	}
	if err := putMatrix(ctx, 0, whole.rowsAt(order), whole.n, whole.rank); err != nil {
		return err
	}
	if err := pick(ctx, 1, whole.values, order); err != nil {
		return err
	}
	return putVector(ctx, 2, shape)
}

// anyRows reports whether any of the first n inputs, which are matrices, has a row.
func anyRows(ctx *kernel.Context, n int) bool {
	for i := range n {
		if ctx.Input(i).Dim(0) > 0 {
			return true
		}
	}
	return false
}

// putEmpty sets the outputs to a sparse tensor without elements.
func putEmpty(ctx *kernel.Context, shape tensor.Shape) error {
	if err := putMatrix(ctx, 0, nil, 0, len(shape)); err != nil {
		return err
	}
	if _, err := ctx.Allocate(1, tensor.Shape{0}); err != nil {
		return err
	}
	return putVector(ctx, 2, shape)
}

func checkConcat(ctx *kernel.Context, n int) error {
	for i := range n {
		if s := ctx.Input(i).Shape(); len(s) != 2 {
			return status.InvalidArgumentf("Input indices should be a matrix but received shape %v at position %d", s, i)
		}
	}
	for i := range n {
		if s := ctx.Input(i + n).Shape(); len(s) != 1 {
			return status.InvalidArgumentf("Input values should be a vector but received shape %v at position %d", s, i)
		}
	}
	for i := range n {
		t := ctx.Input(i + 2*n)
		if t.Rank() != 1 {
			return status.InvalidArgumentf("Input shapes should be a vector but received shape %v at position %d", t.Shape(), i)
		}
		size := int64(1)
		for _, d := range intarg.Values(t) {
			hi, lo := bits.Mul64(uint64(size), uint64(d))
			if d < 0 || hi != 0 || int64(lo) < 0 {
				return status.Errorf(status.Internal, "Encountered overflow from large input shape.")
			}
			size = int64(lo)
		}
	}
	return nil
}

// concatenatedShape returns the dense shape of the concatenation of parts along axis.
func concatenatedShape(parts []tensor.Shape, axis int) (tensor.Shape, error) {
	shape := slices.Clone(parts[0])
	for i, p := range parts[1:] {
		if len(p) != len(shape) {
			return nil, status.InvalidArgumentf("Ranks of all input tensors must match: expected %d but got %d at position %d", len(shape), len(p), i+1)
		}
		for d, size := range p {
			switch {
			case d == axis:
				shape[d] += size
			case size != shape[d]:
				return nil, status.InvalidArgumentf("Input shapes must match: expected %d for dimension %d but got %d at position %d", shape[d], d, size, i+1)
			}
		}
	}
	return shape, shape.Check()
}

// joinParts returns the concatenated elements of all parts, with indices shifted along axis. The
// caller releases the values.
func joinParts(parts []*coo, shape tensor.Shape, axis int) (*coo, error) {
	whole := &coo{shape: shape, rank: len(shape)}
	for _, p := range parts {
		whole.n += p.n
	}
	values, err := tensor.Alloc(parts[0].values.DType(), tensor.Shape{int64(whole.n)})
	if err != nil {
		return nil, err
	}
	whole.values, whole.ix = &values, membudget.MakeCap[int64](whole.n*whole.rank)
	offset, at := int64(0), 0
	for _, p := range parts {
		start := len(whole.ix)
		whole.ix = membudget.AppendAll(whole.ix, p.ix...)
		for i := start + axis; i < len(whole.ix); i += whole.rank {
			whole.ix[i] += offset
		}
		block := values.Rows(at, at+p.n)
		gather(&block, p.values, longs(p.n))
		offset += p.shape[axis]
		at += p.n
	}
	return whole, nil
}

// longs returns 0, 1, …, n-1.
func longs(n int) []int64 {
	out := membudget.Make[int64](n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}
