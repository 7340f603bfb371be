package ragged

import (
	"github.com/weft-ml/weft/internal/opkit/fillempty"
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
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedFillEmptyRows", Doc: "Fills empty rows of a ragged tensor with a default value. Rows are given by the row of each value.",
			In:    []string{"value_rowids: int64", "values: T", "nrows: int64", "default_value: T"},
			Out:   []string{"output_value_rowids: int64", "output_values: T", "empty_row_indicator: bool", "reverse_index_map: int64"},
			Attrs: []string{"T: type"},
			Shape: func(c *opdef.ShapeContext) error {
				if err := shapefn.CheckRanks(c, 0, 1, 1, 0, 0); err != nil {
					return err
				}
				n, err := opdef.MergeDims(c.In[0].Dim(0), c.In[1].Dim(0))
				c.SetAll(shapefn.Of(shapefn.Unknown))
				c.Out[3] = shapefn.Of(n)
				return err
			},
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(fillRows), typeset.With(movable, tensor.Resource, tensor.Variant)...),
	})
	kernel.Register(fillempty.Grad("RaggedFillEmptyRowsGrad", "RaggedFillEmptyRows"))
}

func checkFillRows(rowids, values, nrows, fill *tensor.Tensor) error {
	switch {
	case nrows.Rank() != 0:
		return status.InvalidArgumentf("nrows must be a scalar, saw: %v", nrows.Shape())
	case rowids.Rank() != 1:
		return status.InvalidArgumentf("value_rowids must be a vector, saw: %v", rowids.Shape())
	case values.Rank() != 1:
		return status.InvalidArgumentf("values must be a vector, saw: %v", values.Shape())
	case rowids.Dim(0) != values.Dim(0):
		return status.InvalidArgumentf("The length of `values` (%d) must match the first dimension of `value_rowids` (%d).", values.Dim(0), rowids.Dim(0))
	case fill.Rank() != 0:
		return status.InvalidArgumentf("default_value must be a scalar, saw: %v", fill.Shape())
	}
	return nil
}

func fillRows(ctx *kernel.Context) error {
	values, fill := ctx.Input(1), ctx.Input(3)
	if err := checkFillRows(ctx.Input(0), values, ctx.Input(2), fill); err != nil {
		return err
	}
	rowids, nrows := intarg.Values(ctx.Input(0)), intarg.Scalar(ctx.Input(2))
	dims, err := intarg.Shape([]int64{nrows})
	if err != nil {
		return err
	}
	indicator, err := ctx.Allocate(2, dims)
	if err != nil {
		return err
	}
	if nrows == 0 {
		return fillNoRows(ctx, len(rowids))
	}
	start := membudget.Make[int64](nrows + 1) // first value of each row in the result
	for i, row := range rowids {
		if row < 0 || row >= nrows {
			return status.InvalidArgumentf("indices(%d, 0) is invalid: %d >= %d", i, row, nrows)
		}
		start[row+1]++
	}
	empty := tensor.Values[bool](indicator)
	for row := range nrows {
		empty[row] = start[row+1] == 0
		start[row+1] = start[row] + max(1, start[row+1])
	}
	return putFilled(ctx, rowids, start)
}

// fillNoRows sets the outputs for a tensor without rows. As in TensorFlow, the row ids have a
// second dimension.
func fillNoRows(ctx *kernel.Context, values int) error {
	if values != 0 {
		return status.InvalidArgumentf("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %d", values)
	}
	if _, err := ctx.Allocate(0, tensor.Shape{0, 1}); err != nil {
		return err
	}
	if err := putInts(ctx, 3, nil); err != nil {
		return err
	}
	_, err := ctx.Allocate(1, tensor.Shape{0})
	return err
}

// putFilled sets outputs 0, 1 and 3: the filled tensor and the index map of its values.
func putFilled(ctx *kernel.Context, rowids, start []int64) error {
	n := start[len(start)-1]
	ids, from := membudget.Make[int64](n), membudget.Make[int64](n)
	for row := range len(start) - 1 {
		ids[start[row]] = int64(row)
	}
	for i := range from {
		from[i] = -1
	}
	reverse, next := membudget.Make[int64](len(rowids)), membudget.AppendAll(nil, start...)
	for i, row := range rowids {
		at := next[row]
		ids[at], from[at], reverse[i] = row, int64(i), at
		next[row]++
	}
	if err := putInts(ctx, 0, ids); err != nil {
		return err
	}
	if err := putInts(ctx, 3, reverse); err != nil {
		return err
	}
	out, err := ctx.Allocate(1, tensor.Shape{n})
	if err != nil {
		return err
	}
	repeat(out, ctx.Input(3))
	gather(out, ctx.Input(1), from, 1)
	return nil
}
