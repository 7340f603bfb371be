package boosted

import (
	"maps"
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
		Name: "BoostedTreesSparseAggregateStats",
		Doc:  "Computes BoostedTreesAggregateStats for a sparse feature and returns sparse statistics. Values that are not given are missing values.",
		In: []string{
			"node_ids: int32", "gradients: float32", "hessians: float32", "feature_indices: int32", "feature_values: int32", "feature_shape: int32",
		},
		Out:   []string{"stats_summary_indices: int32", "stats_summary_values: float32", "stats_summary_shape: int32"},
		Attrs: []string{"max_splits: int >= 1", "num_buckets: int >= 1"}, Shape: sparseStatsShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		s := stats{splits: c.Attrs.Int("max_splits"), buckets: c.Attrs.Int("num_buckets")}
		return kernel.Func(s.aggregateSparse), nil
	})
}

func sparseStatsShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 1, 2, 2, 2, 1, 1); err != nil {
		return err
	}
	for _, pair := range [][2]int{{1, 0}, {2, 0}, {3, 4}} {
		if _, err := opdef.MergeDims(dim(c.In[pair[0]], 0), dim(c.In[pair[1]], 0)); err != nil {
			return err
		}
	}
	if err := shapefn.CheckDim(dim(c.In[5], 0), 2); err != nil {
		return err
	}
	c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(shapefn.Unknown, 4), shapefn.Of(shapefn.Unknown), shapefn.Of(4)
	return nil
}

// sparseFeature is a feature with some values. The others are missing values.
type sparseFeature struct {
	indices    matrix[int32] // example and dimension of each value, in order
	values     []int32
	dimensions int
}

func (s *stats) sparseFeature(ctx *kernel.Context, b *batch) (f sparseFeature, err error) {
	if f.indices, err = matrixOf[int32](ctx, 3, "feature_indices"); err != nil {
		return f, err
	}
	if f.indices.cols != 2 {
		return f, status.InvalidArgumentf("feature_indices must be a matrix of shape [?, 2], received shape %v", ctx.Input(3).Shape())
	}
	if f.values, err = vector[int32](ctx, 4, "feature_values"); err != nil {
		return f, err
	}
	shape, err := vector[int32](ctx, 5, "feature_shape")
	switch {
	case err != nil:
		return f, err
	case len(shape) != 2 || shape[1] < 0:
		return f, status.InvalidArgumentf("feature_shape must have two sizes, got %d elements", len(shape))
	case len(f.values) != f.indices.rows:
		return f, status.InvalidArgumentf("Number of elements in feature_values must match number of sparse entries in feature_indices. Got %d and %d",
			len(f.values), f.indices.rows)
	}
	f.dimensions = int(shape[1])
	for i, bucket := range f.values {
		at := f.indices.row(i)
		switch {
		case bucket < 0 || int(bucket) > s.buckets:
			return f, s.noBucket(bucket)
		case at[0] < 0 || int(at[0]) >= len(b.nodes):
			return f, status.InvalidArgumentf("feature_indices(%d, 0) is not an example: %d is not in [0, %d)", i, at[0], len(b.nodes))
		case at[1] < 0 || int(at[1]) >= f.dimensions:
			return f, status.InvalidArgumentf("feature_indices(%d, 1) is not a dimension: %d is not in [0, %d)", i, at[1], f.dimensions)
		case i > 0 && slices.Compare(f.indices.row(i-1), at) >= 0:
			return f, status.InvalidArgumentf("feature_indices should be increasing but feature_indices(%d) is %v after %v", i, at, f.indices.row(i-1))
		}
	}
	return f, nil
}

const (
	// placeMemory is about the memory of the sums of a place without the numbers, in bytes.
	placeMemory = 96
	// checkEvery is the number of dimensions between two looks at the context of the step.
	checkEvery = 1 << 10
)

// aggregateSparse runs BoostedTreesSparseAggregateStats.
func (s *stats) aggregateSparse(ctx *kernel.Context) error {
	b, err := s.batch(ctx)
	if err != nil {
		return err
	}
	f, err := s.sparseFeature(ctx, &b)
	if err != nil {
		return err
	}
	width := b.gradients.cols + b.hessians.cols
	sums := map[place][]float32{}
	var meter membudget.Meter
	if len(b.nodes) > 0 {
		// each dimension has at least one place, and many places take long to make
		membudget.MustTake(int64(f.dimensions) * int64(placeMemory+4*width))
	}
	next := 0 // the first given value that has not been used
	done := 0 // dimensions
	for i, node := range b.nodes {
		for d := range int32(f.dimensions) {
			if done++; done%checkEvery == 0 && ctx.Context().Err() != nil {
				return ctx.Context().Err()
			}
			bucket := int32(s.buckets)
			if next < len(f.values) && slices.Equal(f.indices.row(next), []int32{int32(i), d}) {
				bucket = f.values[next]
				next++
			}
			at := place{node, d, bucket}
			if sums[at] == nil {
				meter.MustTakeEntry(4 * width)
				sums[at] = membudget.Make[float32](width)
			}
			for j, v := range b.gradients.row(i) {
				sums[at][j] += v
			}
			for j, v := range b.hessians.row(i) {
				sums[at][b.gradients.cols+j] += v
			}
		}
	}
	rows := int64(len(sums) * width)
	indices, err := ctx.Allocate(0, tensor.Shape{rows, 4})
	if err != nil {
		return err
	}
	values, err := ctx.Allocate(1, tensor.Shape{rows})
	if err != nil {
		return err
	}
	index, value := tensor.Values[int32](indices)[:0], tensor.Values[float32](values)[:0]
	for _, at := range slices.SortedFunc(maps.Keys(sums), comparePlaces) {
		for j, v := range sums[at] {
			index = membudget.AppendAll(index, at.node, at.dimension, at.bucket, int32(j))
			value = membudget.Append(value, v)
		}
	}
	return setVector(ctx, 2, []int32{int32(s.splits), int32(f.dimensions), int32(s.buckets) + 1, int32(width)})
}
