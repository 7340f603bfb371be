package boosted

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
		Name: "BoostedTreesMakeStatsSummary",
		Doc:  "Sums gradients and hessians by node and bucket for each of several features with one dimension.",
		In:   []string{"node_ids: int32", "gradients: float32", "hessians: float32", "bucketized_features_list: num_features * int32"},
		Out:  []string{"stats_summary: float32"}, Attrs: []string{"max_splits: int >= 1", "num_buckets: int >= 1", "num_features: int >= 1"},
		Shape: func(c *opdef.ShapeContext) error {
			if err := statsShape(c, 1); err != nil {
				return err
			}
			c.Out[0] = shapefn.Of(int64(c.Attrs.Int("num_features")), int64(c.Attrs.Int("max_splits")), int64(c.Attrs.Int("num_buckets")), 2)
			return nil
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		features, s := c.Attrs.Int("num_features"), stats{splits: c.Attrs.Int("max_splits"), buckets: c.Attrs.Int("num_buckets")}
		return kernel.Func(func(ctx *kernel.Context) error { return s.summarize(ctx, features) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesAggregateStats",
		Doc:  "Sums gradients and hessians by node, dimension of a feature, and bucket. The last bucket is for missing values.",
		In:   []string{"node_ids: int32", "gradients: float32", "hessians: float32", "feature: int32"},
		Out:  []string{"stats_summary: float32"}, Attrs: []string{"max_splits: int >= 1", "num_buckets: int >= 1"},
		Shape: func(c *opdef.ShapeContext) error {
			if err := statsShape(c, 2); err != nil {
				return err
			}
			feature, err := opdef.WithRank(c.In[3], 2)
			if err != nil {
				return err
			}
			gradients, hessians := dim(c.In[1], 1), dim(c.In[2], 1)
			c.Out[0] = shapefn.Of(int64(c.Attrs.Int("max_splits")), feature.Dim(1), int64(c.Attrs.Int("num_buckets"))+1, shapefn.Add(gradients, hessians))
			return nil
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		s := stats{splits: c.Attrs.Int("max_splits"), buckets: c.Attrs.Int("num_buckets")}
		return kernel.Func(s.aggregate), nil
	})
}

// dim returns a dimension of a shape, or Unknown.
func dim(s shapefn.Shape, i int) int64 {
	if !s.RankKnown() {
		return shapefn.Unknown
	}
	return s.Dim(i)
}

// statsShape checks the shapes of node numbers, gradients, hessians and features, whose first
// dimension is the batch. The features have the given rank.
func statsShape(c *opdef.ShapeContext, rank int) error {
	if err := shapefn.CheckRanks(c, 0, 1, 2, 2); err != nil {
		return err
	}
	batch := dim(c.In[0], 0)
	for i, in := range c.In[1:] {
		if i >= 2 {
			if _, err := opdef.WithRank(in, rank); err != nil {
				return err
			}
		}
		var err error
		if batch, err = opdef.MergeDims(batch, dim(in, 0)); err != nil {
			return err
		}
	}
	return nil
}

// stats is the size of statistics.
type stats struct{ splits, buckets int }

// batch holds the inputs that all operations on statistics have.
type batch struct {
	nodes     []int32
	gradients matrix[float32]
	hessians  matrix[float32]
}

func (s *stats) batch(ctx *kernel.Context) (b batch, err error) {
	if b.nodes, err = vector[int32](ctx, 0, "node_ids"); err != nil {
		return b, err
	}
	for i, m := range []*matrix[float32]{&b.gradients, &b.hessians} {
		name := []string{"gradients", "hessians"}[i]
		if *m, err = matrixOf[float32](ctx, 1+i, name); err != nil {
			return b, err
		}
		if m.rows != len(b.nodes) {
			return b, status.InvalidArgumentf("node_ids size should match 0th dim of %s. node ids size: %d, %s dim0: %d", name, len(b.nodes), name, m.rows)
		}
	}
	for i, node := range b.nodes {
		if node < 0 {
			return b, status.InvalidArgumentf("node_ids %dth entry should be >=0, got: %d", i, node)
		}
		if int(node) >= s.splits {
			return b, status.InvalidArgumentf("node_ids %dth entry should be less than max_splits %d, got: %d", i, s.splits, node)
		}
	}
	return b, nil
}

// summarize runs BoostedTreesMakeStatsSummary.
func (s *stats) summarize(ctx *kernel.Context, features int) error {
	b, err := s.batch(ctx)
	if err != nil {
		return err
	}
	if len(b.nodes) > 0 && (b.gradients.cols == 0 || b.hessians.cols == 0) {
		return status.InvalidArgumentf("gradients and hessians must have a column")
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(features), int64(s.splits), int64(s.buckets), 2})
	if err != nil {
		return err
	}
	sums := membudget.Make[float64](out.NumElements())
	for f := range features {
		values, err := vector[int32](ctx, 3+f, "bucketized_features_list")
		if err != nil {
			return err
		}
		if len(values) != len(b.nodes) {
			return status.InvalidArgumentf("feature %d should have same size as node_ids, got %d and %d", f, len(values), len(b.nodes))
		}
		for i, bucket := range values {
			if bucket < 0 || int(bucket) >= s.buckets {
				return s.noBucket(bucket)
			}
			at := 2 * ((f*s.splits+int(b.nodes[i]))*s.buckets + int(bucket))
			sums[at] += float64(b.gradients.row(i)[0])
			sums[at+1] += float64(b.hessians.row(i)[0])
		}
	}
	narrow(out, sums)
	return nil
}

func (s *stats) noBucket(bucket int32) error {
	return status.InvalidArgumentf("bucket %d is not in [0, %d)", bucket, s.buckets)
}

func narrow(out *tensor.Tensor, sums []float64) {
	for i, v := range sums {
		tensor.Values[float32](out)[i] = float32(v)
	}
}

// aggregate runs BoostedTreesAggregateStats.
func (s *stats) aggregate(ctx *kernel.Context) error {
	b, err := s.batch(ctx)
	if err != nil {
		return err
	}
	feature, err := matrixOf[int32](ctx, 3, "feature")
	if err != nil {
		return err
	}
	if feature.rows != len(b.nodes) {
		return status.InvalidArgumentf("node_ids size should match 0th dim of feature. node ids size: %d, feature dim0: %d", len(b.nodes), feature.rows)
	}
	width := b.gradients.cols + b.hessians.cols
	out, err := ctx.Allocate(0, tensor.Shape{int64(s.splits), int64(feature.cols), int64(s.buckets) + 1, int64(width)})
	if err != nil {
		return err
	}
	sums := membudget.Make[float64](out.NumElements())
	for i, node := range b.nodes {
		for d, bucket := range feature.row(i) {
			if bucket == -1 {
				bucket = int32(s.buckets)
			}
			if bucket < 0 || int(bucket) > s.buckets {
				return s.noBucket(bucket)
			}
			at := ((int(node)*feature.cols+d)*(s.buckets+1) + int(bucket)) * width
			b.add(sums[at:at+width], i)
		}
	}
	narrow(out, sums)
	return nil
}

// add adds the gradients and hessians of example i to a row of sums.
func (b *batch) add(sums []float64, i int) {
	for j, v := range b.gradients.row(i) {
		sums[j] += float64(v)
	}
	for j, v := range b.hessians.row(i) {
		sums[b.gradients.cols+j] += float64(v)
	}
}

// place is the place of a sum in sparse statistics.
type place struct{ node, dimension, bucket int32 }

func comparePlaces(a, b place) int {
	return slices.Compare([]int32{a.node, a.dimension, a.bucket}, []int32{b.node, b.dimension, b.bucket})
}
