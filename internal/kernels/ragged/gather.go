package ragged

import (
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
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "RaggedGather", Doc: "Gathers rows of a ragged tensor according to indices.",
			In:  []string{"params_nested_splits: PARAMS_RAGGED_RANK * Tsplits", "params_dense_values: Tvalues", "indices: Tindices"},
			Out: []string{"output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits", "output_dense_values: Tvalues"},
			Attrs: []string{"Tvalues: type", "Tindices: {int32, int64}", "Tsplits: {int32, int64} = int64", "PARAMS_RAGGED_RANK: int >= 1",
				"OUTPUT_RAGGED_RANK: int >= 0"},
			Shape: gatherShape,
		},
		Kernels: kernel.ForTypes("Tvalues", newGather, movable...),
	})
}

func gatherShape(c *opdef.ShapeContext) error {
	in, out := c.Attrs.Int("PARAMS_RAGGED_RANK"), c.Attrs.Int("OUTPUT_RAGGED_RANK")
	if rank := out - in + 1; rank < 0 {
		return status.InvalidArgumentf("OUTPUT_RAGGED_RANK must be at least PARAMS_RAGGED_RANK - 1")
	} else if _, err := opdef.WithRank(c.In[in+1], rank); err != nil {
		return err
	}
	for _, s := range c.In[:in] {
		if _, err := opdef.WithRank(s, 1); err != nil {
			return err
		}
	}
	values, err := opdef.WithRankAtLeast(c.In[in], 1)
	if err != nil {
		return err
	}
	c.SetAll(shapefn.Of(shapefn.Unknown))
	if values.RankKnown() {
		c.Out[out] = shapefn.Concat(shapefn.Of(shapefn.Unknown), shapefn.From(values, 1))
	} else {
		c.Out[out] = shapefn.Shape{}
	}
	return nil
}

// checkNested checks that nested row splits do not exceed the number of items that they split.
func checkNested(splits [][]int64, values int) error {
	for i, s := range splits {
		last := int64(values)
		if i < len(splits)-1 {
			last = int64(len(splits[i+1]) - 1)
		}
		switch {
		case len(s) == 0:
			return status.InvalidArgumentf("Ragged splits may not be empty")
		case s[0] < 0:
			return status.InvalidArgumentf("Ragged splits must be non-negative")
		case s[len(s)-1] > last:
			return status.InvalidArgumentf("Ragged splits must not point past values")
		case !slices.IsSorted(s):
			return status.InvalidArgumentf("Ragged splits must be sorted")
		}
	}
	return nil
}

func newGather(c *kernel.Construction) (kernel.Kernel, error) {
	n, outs := c.Attrs.Int("PARAMS_RAGGED_RANK"), c.Attrs.Int("OUTPUT_RAGGED_RANK")
	return kernel.Func(func(ctx *kernel.Context) error {
		splits, values, indices := nested(ctx, n), ctx.Input(n), ctx.Input(n+1)
		rows := ctx.Input(0).NumElements() - 1
		switch {
		case ctx.Input(0).Rank() == 0:
			return status.InvalidArgumentf("Split tensors must not be scalars")
		case values.Rank() == 0:
			return status.InvalidArgumentf("params.rank must be nonzero")
		case indices.Rank()-1+n != outs:
			return status.InvalidArgumentf("indices of rank %d give %d row splits, not OUTPUT_RAGGED_RANK %d", indices.Rank(), indices.Rank()-1+n, outs)
		}
		for i, x := range intarg.Values(indices) {
			if x < 0 || x >= int64(rows) {
				return status.InvalidArgumentf("indices%s = %d is not in [0, %d)", intarg.Position(indices.Shape(), i), x, rows)
			}
		}
		if err := checkNested(splits, values.Dim(0)); err != nil {
			return err
		}
		return gatherRows(ctx, splits, values, indices)
	}), nil
}

// gatherRows sets the outputs to the rows of a ragged tensor with the given indices.
func gatherRows(ctx *kernel.Context, splits [][]int64, values, indices *tensor.Tensor) error {
	outer := outerSplits(indices.Shape())
	out := membudget.Make[[]int64](len(splits))
	for i := range out {
		out[i] = []int64{0}
	}
	var from []int64
	for _, lo := range intarg.Values(indices) {
		hi := lo + 1
		for i, s := range splits {
			shift := out[i][len(out[i])-1] - s[lo]
			for _, end := range s[lo+1 : hi+1] {
				out[i] = membudget.Append(out[i], end+shift)
			}
			lo, hi = s[lo], s[hi]
		}
		for ; lo < hi; lo++ {
			from = membudget.Append(from, lo)
		}
	}
	if indices.Rank() == 0 {
		out = out[1:] // the row itself has trivial splits
	}
	//sizedmake:ok an element for each dimension
	for i, s := range slices.Concat(outer, out) {
		if err := putInts(ctx, i, s); err != nil {
			return err
		}
	}
	dst, err := ctx.Allocate(len(outer)+len(out), slices.Concat(tensor.Shape{int64(len(from))}, values.Shape()[1:]))
	if err == nil {
		gather(dst, values, from, int(values.Shape()[1:].NumElements()))
	}
	return err
}

// outerSplits returns the row splits of all dimensions of a shape except the last.
func outerSplits(shape tensor.Shape) (out [][]int64) {
	rows := int64(1)
	for d := range len(shape) - 1 {
		rows *= shape[d]
		splits := membudget.Make[int64](rows + 1)
		for i := range splits {
			splits[i] = int64(i) * shape[d+1]
		}
		//sizedmake:ok one for each input
		out = append(out, splits)
	}
	return out
}
