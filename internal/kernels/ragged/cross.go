package ragged

import (
	"github.com/weft-ml/weft/internal/opkit/featurecross"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedCross", Doc: "Generates feature crosses: the combinations of the feature values in each row, as strings or hashes.",
			In: []string{"ragged_values: ragged_values_types", "ragged_row_splits: ragged_splits_types", "sparse_indices: Nsparse * int64",
				"sparse_values: sparse_values_types", "sparse_shape: Nsparse * int64", "dense_inputs: dense_types"},
			Out: []string{"output_values: out_values_type", "output_row_splits: out_row_splits_type"},
			Attrs: []string{"Nsparse: int >= 0", "input_order: string", "hashed_output: bool", "num_buckets: int >= 0", "hash_key: int",
				"ragged_values_types: list({int64, string}) >= 0", "ragged_splits_types: list({int32, int64}) >= 0",
				"sparse_values_types: list({int64, string}) >= 0", "dense_types: list({int64, string}) >= 0", "out_values_type: {int64, string}",
				"out_row_splits_type: {int32, int64}"},
			Shape: crossShape,
		},
		Kernels: kernel.ByType("out_values_type", kernel.Table{
			tensor.String: newCross(func(c *kernel.Construction, columns []*featurecross.Column) featurecross.Combination[string] {
				return featurecross.Join(columns, featurecross.Separator)
			}),
			tensor.Int64: newCross(func(c *kernel.Construction, columns []*featurecross.Column) featurecross.Combination[int64] {
				return featurecross.Hash(columns, uint64(c.Attrs.Int("hash_key")), int64(c.Attrs.Int("num_buckets")))
			}),
		}),
	})
}

// crossCounts holds the number of inputs of each kind.
type crossCounts struct{ ragged, sparse, dense int }

func newCrossCounts(attrs opdef.Attrs) (n crossCounts, err error) {
	n = crossCounts{len(attrs.Types("ragged_values_types")), attrs.Int("Nsparse"), len(attrs.Types("dense_types"))}
	switch {
	case n.ragged != len(attrs.Types("ragged_splits_types")):
		return n, status.InvalidArgumentf("ragged values and splits must have the same length.")
	case n.sparse != len(attrs.Types("sparse_values_types")):
		return n, status.InvalidArgumentf("sparse indices and values must have the same length")
	}
	return n, nil
}

const (
	crossRankError  = "tf.ragged.cross only supports inputs with rank=2"
	crossBatchError = "inputs must all have the same batch dimension size."
)

func crossShape(c *opdef.ShapeContext) error {
	n, err := newCrossCounts(c.Attrs)
	if err != nil {
		return err
	}
	splits := shapefn.Of(shapefn.Unknown)
	for _, s := range c.In[n.ragged : 2*n.ragged] {
		if splits, err = opdef.MergeShapes(splits, s); err != nil {
			return status.InvalidArgumentf(crossBatchError)
		}
	}
	for _, s := range c.In[2*n.ragged+3*n.sparse:] {
		switch {
		case !s.RankKnown():
			continue
		case s.Rank() != 2:
			return status.InvalidArgumentf(crossRankError)
		}
		if splits, err = opdef.MergeShapes(splits, shapefn.Of(shapefn.Add(s.Dim(0), 1))); err != nil {
			return status.InvalidArgumentf(crossBatchError)
		}
	}
	c.Out[0], c.Out[1] = shapefn.Of(shapefn.Unknown), splits
	return nil
}

func newCross[T tensor.Elem](combination func(*kernel.Construction, []*featurecross.Column) featurecross.Combination[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		n, err := newCrossCounts(c.Attrs)
		order := c.Attrs.String("input_order")
		if err == nil && n.ragged+n.sparse+n.dense != len(order) {
			err = status.InvalidArgumentf("Invalid length for input_order")
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			columns, rows, err := n.columns(ctx, order)
			if err != nil {
				return err
			}
			splits, err := featurecross.Splits(ctx.Context(), columns, rows)
			if err != nil {
				return err
			}
			if err := putInts(ctx, 1, splits); err != nil {
				return err
			}
			out, err := ctx.Allocate(0, tensor.Shape{splits[rows]})
			if err != nil {
				return err
			}
			vals, combine := tensor.Values[T](out), combination(c, columns)
			for r := range rows {
				if err := featurecross.Row(ctx.Context(), columns, r, vals[splits[r]:splits[r+1]], combine); err != nil {
					return err
				}
			}
			return nil
		}), err
	}
}

// columns returns the features in the given order, and the number of rows.
func (n crossCounts) columns(ctx *kernel.Context, order string) (columns []*featurecross.Column, rows int, err error) {
	read := map[rune]struct {
		what, of string // for errors
		first, n int
		column   func(i int) (*featurecross.Column, error)
	}{
		'R': {"ragged tensor value", "values", 0, n.ragged, func(i int) (*featurecross.Column, error) { return raggedColumn(ctx.Input(i), ctx.Input(n.ragged+i)) }},
		'S': {"sparse tensor value", "values", 2 * n.ragged, n.sparse, func(i int) (*featurecross.Column, error) {
			return sparseColumn(i-2*n.ragged, ctx.Input(i), ctx.Input(n.sparse+i), ctx.Input(2*n.sparse+i))
		}},
		'D': {"dense tensor", "tensors", 2*n.ragged + 3*n.sparse, n.dense, func(i int) (*featurecross.Column, error) { return denseColumn(ctx.Input(i)) }},
	}
	rows = -1
	next := map[rune]int{}
	for _, kind := range order {
		r, ok := read[kind]
		switch {
		case !ok:
			return nil, 0, status.InvalidArgumentf("Unexpected input_order value.")
		case next[kind] >= r.n:
			return nil, 0, status.InvalidArgumentf("input_order %q specifies reading a %s at index %d from a list of %d %s.", order, r.what, next[kind], r.n, r.of)
		}
		c, err := r.column(r.first + next[kind])
		if err != nil {
			return nil, 0, err
		}
		//sizedmake:ok three kinds
		if next[kind]++; rows >= 0 && c.Rows() != rows {
			return nil, 0, status.InvalidArgumentf(crossBatchError)
		}
		//sizedmake:ok one for each input at most
		rows, columns = c.Rows(), append(columns, c)
	}
	return columns, max(rows, 0), nil
}

func raggedColumn(values, splits *tensor.Tensor) (*featurecross.Column, error) {
	if values.Rank() != 1 || splits.Rank() != 1 {
		return nil, status.InvalidArgumentf(crossRankError + ".")
	}
	if err := checkSplits(splits, values.NumElements()); err != nil {
		return nil, err
	}
	return featurecross.Ragged(values, intarg.Values(splits)), nil
}

func sparseColumn(i int, indices, values, shape *tensor.Tensor) (*featurecross.Column, error) {
	switch {
	case indices.Rank() != 2 || values.Rank() != 1 || shape.Rank() != 1 || indices.Dim(0) != values.Dim(0):
		return nil, status.InvalidArgumentf("Invalid SparseTensor %d", i)
	case shape.NumElements() != 2 || indices.Dim(1) != 2:
		return nil, status.InvalidArgumentf(crossRankError + ".")
	}
	return featurecross.Sparse(indices, values, intarg.Values(shape)[0])
}

func denseColumn(t *tensor.Tensor) (*featurecross.Column, error) {
	if t.Rank() != 2 {
		return nil, status.InvalidArgumentf(crossRankError + ".")
	}
	return featurecross.Dense(t), nil
}
