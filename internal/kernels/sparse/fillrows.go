package sparse

import (
	"github.com/weft-ml/weft/internal/opkit/fillempty"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "SparseFillEmptyRows", Doc: "Fills each row without elements with a default value.",
		In:    []string{"indices: int64", "values: T", "dense_shape: int64", "default_value: T"},
		Out:   []string{"output_indices: int64", "output_values: T", "empty_row_indicator: bool", "reverse_index_map: int64"},
		Attrs: []string{"T: type"}, Shape: fillRowsShape,
	}, fillRows)
	kernel.Register(fillempty.Grad("SparseFillEmptyRowsGrad", "SparseFillEmptyRows"))
}

func fillRowsShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 2, 1, 1, 0); err != nil {
		return err
	}
	n, err := opdef.MergeDims(c.In[0].Dim(0), c.In[1].Dim(0))
	if err != nil {
		return err
	}
	if _, err := opdef.MergeDims(c.In[0].Dim(1), c.In[2].Dim(0)); err != nil {
		return err
	}
	rank := shapefn.Count(c.In[2])
	if rank == 0 {
		return status.InvalidArgumentf("dense_shape must not be empty")
	}
	dense, err := shapefn.Input(c, 2)
	if err != nil {
		return err
	}
	c.Out[0], c.Out[1] = shapefn.Of(shapefn.Unknown, rank), shapefn.Of(shapefn.Unknown)
	c.Out[2], c.Out[3] = shapefn.Of(dense.Dim(0)), shapefn.Of(n)
	return nil
}

func checkFillRows(indices, values, shape, fill *tensor.Tensor) error {
	switch {
	case shape.Rank() != 1:
		return status.InvalidArgumentf("dense_shape must be a vector, saw: %v", shape.Shape())
	case indices.Rank() != 2:
		return status.InvalidArgumentf("indices must be a matrix, saw: %v", indices.Shape())
	case values.Rank() != 1:
		return status.InvalidArgumentf("values must be a vector, saw: %v", values.Shape())
	case indices.Dim(0) != values.Dim(0):
		return status.InvalidArgumentf("The length of `values` (%d) must match the first dimension of `indices` (%d).", values.Dim(0), indices.Dim(0))
	case indices.Dim(1) != shape.Dim(0):
		return status.InvalidArgumentf("The length of `dense_shape` (%d) must match the second dimension of `indices` (%d).", shape.Dim(0), indices.Dim(1))
	case fill.Rank() != 0:
		return status.InvalidArgumentf("default_value must be a scalar, saw: %v", fill.Shape())
	case shape.NumElements() == 0:
		return status.InvalidArgumentf("Dense shape cannot be empty.")
	}
	return nil
}

func fillRows(ctx *kernel.Context) error {
	indices, values, shape, fill := ctx.Input(0), ctx.Input(1), ctx.Input(2), ctx.Input(3)
	if err := checkFillRows(indices, values, shape, fill); err != nil {
		return err
	}
	dims := intarg.Values(shape)
	s := &coo{ix: intarg.Values(indices), values: values, shape: dims, n: indices.Dim(0), rank: indices.Dim(1)}
	if dims[0] == 0 && s.n > 0 {
		return status.InvalidArgumentf("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %d", s.n)
	}
	lengths, err := intarg.Shape(dims[:1])
	if err != nil {
		return err
	}
	indicator, err := ctx.AllocateZeros(2, lengths)
	if err != nil {
		return err
	}
	empty := tensor.Values[bool](indicator)
	for i := range empty {
		empty[i] = true
	}
	for i := range s.n {
		row := s.at(i)[0]
		if row < 0 || row >= dims[0] {
			return status.InvalidArgumentf("indices(%d, 0) is invalid: %d >= %d", i, row, dims[0])
		}
		empty[row] = false
	}
	return s.putFilled(ctx, fill, empty)
}

// putFilled sets outputs 0, 1 and 3 to the filled tensor, with elements ordered by row.
func (s *coo) putFilled(ctx *kernel.Context, fill *tensor.Tensor, empty []bool) error {
	n := s.n // of the elements of the result
	for _, isEmpty := range empty {
		if isEmpty {
			n++
		}
	}
	// from is a value's number plus one; 0 is the default
	ix, from := membudget.MakeCap[int64](n*s.rank), membudget.MakeCap[int64](n)
	reverse := membudget.Make[int64](s.n)
	order, err := s.sorted(ctx.Context(), []int{0})
	if err != nil {
		return err
	}
	for row, isEmpty := range empty {
		if isEmpty {
			ix = membudget.Append(ix, int64(row))
			for range s.rank - 1 {
				ix = membudget.Append(ix, 0)
			}
			from = membudget.Append(from, 0)
			continue
		}
		for ; len(order) > 0 && s.at(int(order[0]))[0] == int64(row); order = order[1:] {
			reverse[order[0]] = int64(len(from))
			ix = membudget.AppendAll(ix, s.at(int(order[0]))...)
			from = membudget.Append(from, order[0]+1)
		}
	}
	if err := putMatrix(ctx, 0, ix, len(from), s.rank); err != nil {
		return err
	}
	all, err := prepended(s.values, fill)
	if err != nil {
		return err
	}
	defer all.Release()
	if err := pick(ctx, 1, &all, from); err != nil {
		return err
	}
	return putVector(ctx, 3, reverse)
}
