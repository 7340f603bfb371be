package ragged

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RaggedTensorToSparse", Doc: "Converts a ragged tensor to a sparse tensor.",
		In:    []string{"rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: T"},
		Out:   []string{"sparse_indices: int64", "sparse_values: T", "sparse_dense_shape: int64"},
		Attrs: []string{"RAGGED_RANK: int >= 1", "T: type", "Tsplits: {int32, int64} = int64"},
		Shape: toSparseShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		n := c.Attrs.Int("RAGGED_RANK")
		return kernel.Func(func(ctx *kernel.Context) error { return toSparse(ctx, n) }), nil
	})
}

func toSparseShape(c *opdef.ShapeContext) error {
	n := c.Attrs.Int("RAGGED_RANK")
	values, err := opdef.WithRankAtLeast(c.In[n], 1)
	if err != nil {
		return err
	}
	for _, s := range c.In[:n] {
		if _, err := opdef.WithRank(s, 1); err != nil {
			return err
		}
	}
	rank, count := shapefn.Unknown, shapefn.Unknown
	if values.RankKnown() {
		rank, count = int64(values.Rank()+n), shapefn.Count(values)
	}
	c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(count, rank), shapefn.Of(count), shapefn.Of(rank)
	return nil
}

func checkToSparse(splits [][]int64, values *tensor.Tensor) error {
	if values.Rank() == 0 {
		return status.InvalidArgumentf("rt_dense_values must have at least one dimension")
	}
	for i, s := range splits {
		switch {
		case len(s) == 0:
			return status.InvalidArgumentf("ragged splits may not be empty.")
		case s[0] != 0:
			return status.InvalidArgumentf("First value of ragged splits must be 0.")
		}
		for j := 1; j < len(s); j++ {
			if s[j] < s[j-1] {
				return status.InvalidArgumentf("Ragged splits should be non decreasing, but we got %d followed by %d", s[j-1], s[j])
			}
		}
		next := int64(values.Dim(0))
		if i < len(splits)-1 {
			next = int64(len(splits[i+1]) - 1)
		}
		if s[len(s)-1] != next {
			return status.InvalidArgumentf("Final value of ragged splits must match the length the corresponding ragged values.")
		}
	}
	return nil
}

func toSparse(ctx *kernel.Context, n int) error {
	splits, values := nested(ctx, n), ctx.Input(n)
	if err := checkToSparse(splits, values); err != nil {
		return err
	}
	shape := []int64{int64(len(splits[0]) - 1)}
	for _, s := range splits {
		width := int64(0)
		for j := 1; j < len(s); j++ {
			width = max(width, s[j]-s[j-1])
		}
		shape = append(shape, width)
	}
	shape = append(shape, values.Shape()[1:]...)
	if err := putInts(ctx, 2, shape); err != nil {
		return err
	}
	if err := ctx.PassInput(n, 1, int64(values.NumElements())); err != nil {
		return err
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(values.NumElements()), int64(len(shape))})
	if err != nil {
		return err
	}
	w := &indexWriter{splits: splits, inner: values.Shape()[1:], out: tensor.Values[int64](out), at: membudget.Make[int64](len(shape))}
	for row := range shape[0] {
		w.at[0] = row
		w.write(0, row)
	}
	return nil
}

// indexWriter writes the indices of all values in order.
type indexWriter struct {
	splits [][]int64
	inner  tensor.Shape // shape of a value
	out    []int64
	at     []int64 // current index
}

// write writes the indices of row i of level d.
func (w *indexWriter) write(d int, i int64) {
	for child := w.splits[d][i]; child < w.splits[d][i+1]; child++ {
		w.at[d+1] = child - w.splits[d][i]
		if d < len(w.splits)-1 {
			w.write(d+1, child)
			continue
		}
		within := w.at[d+2:]
		clear(within)
		for range w.inner.NumElements() {
			w.out = w.out[copy(w.out, w.at):]
			for k := range slices.Backward(within) {
				if within[k]++; within[k] < w.inner[k] {
					break
				}
				within[k] = 0
			}
		}
	}
}
