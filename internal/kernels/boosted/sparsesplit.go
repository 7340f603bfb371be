package boosted

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesSparseCalculateBestFeatureSplit", Doc: "Finds the best split of each node by one feature with sparse statistics.",
		In: []string{
			"node_id_range: int32", "stats_summary_indices: int32", "stats_summary_values: float32", "stats_summary_shape: int32",
			"l1: float32", "l2: float32", "tree_complexity: float32", "min_node_weight: float32",
		},
		Out: []string{
			"node_ids: int32", "gains: float32", "feature_dimensions: int32", "thresholds: int32", "left_node_contribs: float32",
			"right_node_contribs: float32", "split_with_default_directions: string",
		},
		Attrs: []string{"logits_dimension: int >= 1", "split_type: {'inequality'} = 'inequality'"},
		Shape: func(c *opdef.ShapeContext) error { return splitShape(c, 2, 1, 1) },
	}, sparseSplits)
}

// sums are the statistics of a bucket.
type sums struct{ g, h float32 }

func (s *sums) add(other *sums) {
	s.g += other.g
	s.h += other.h
}

// sparseNode holds the statistics of a node by dimension and bucket.
type sparseNode struct {
	node       int32
	dimensions map[int32]map[int32]*sums
	meter      *membudget.Meter
}

// smallestMap is the memory of the map of a dimension with one bucket, in bytes.
const smallestMap = 200

func newSparseNode(node int32, meter *membudget.Meter) *sparseNode {
	return &sparseNode{node, map[int32]map[int32]*sums{}, meter}
}

// set stores one number of the statistics: that of a dimension and a bucket.
func (n *sparseNode) set(at []int32, v float32) {
	buckets := n.dimensions[at[1]]
	if buckets == nil {
		n.meter.MustTakeEntry(smallestMap)
		buckets = map[int32]*sums{}
		n.dimensions[at[1]] = buckets
	}
	if buckets[at[2]] == nil {
		n.meter.MustTakeEntry(8) // sums
		buckets[at[2]] = &sums{}
	}
	switch at[3] {
	case 0:
		buckets[at[2]].g = v
	case 1:
		buckets[at[2]].h = v
	}
}

// sparseSplits runs BoostedTreesSparseCalculateBestFeatureSplit. Only the first gradient and the
// first hessian count, as in TensorFlow.
func sparseSplits(ctx *kernel.Context) error {
	var s splitting
	if err := s.read(ctx, 4); err != nil {
		return err
	}
	indices, err := matrixOf[int32](ctx, 1, "stats_summary_indices")
	if err != nil {
		return err
	}
	values, err := vector[float32](ctx, 2, "stats_summary_values")
	if err != nil {
		return err
	}
	shape, err := vector[int32](ctx, 3, "stats_summary_shape")
	switch {
	case err != nil:
		return err
	case len(shape) != 4 || shape[3] < 2:
		return status.InvalidArgumentf("stats_summary_shape must have four elements, the last of them the number of gradients and hessians, got %d elements", len(shape))
	case indices.cols != 4 || indices.rows != len(values):
		return status.InvalidArgumentf("stats_summary_indices must have the shape [%d, 4], got %v", len(values), ctx.Input(1).Shape())
	}
	var found []split
	var meter membudget.Meter
	current := newSparseNode(-1, &meter)
	end := func() {
		if best, ok := s.sparse(current, shape[2]-1); ok {
			meter.MustTake(best.memory())
			found = membudget.Append(found, best)
		}
	}
	for i, v := range values {
		at := indices.row(i)
		switch {
		case at[0] < s.first || at[0] >= s.last:
			return status.InvalidArgumentf("node_id = %d which is not in [%d, %d)", at[0], s.first, s.last)
		case at[3] < 0 || at[3] >= shape[3]:
			return status.InvalidArgumentf("Stat dim, the sum of logits dim and hessian dim in stats_summary_indices, should be in [0, %d), which was %d at index %d",
				shape[3], at[3], i)
		case at[0] != current.node:
			end()
			current = newSparseNode(at[0], &meter)
		}
		current.set(at, v)
	}
	end()
	return setSplits(ctx, found, 1, s.complexity, false)
}

// sparse returns the best split of a node. Bucket missing holds the sums of missing values.
func (s *splitting) sparse(n *sparseNode, missing int32) (split, bool) {
	c := newCandidates(s.regularization, n.node)
	var total sums
	var parent float32
	for i, dimension := range slices.Sorted(maps.Keys(n.dimensions)) {
		buckets := n.dimensions[dimension]
		order := slices.Sorted(maps.Keys(buckets))
		if i == 0 { // every dimension has the same sum
			for _, b := range order {
				total.add(buckets[b])
			}
			if total.h < s.minWeight {
				break
			}
			_, parent = s.single(total.g, total.h)
		}
		var absent, left sums
		if last := buckets[missing]; last != nil {
			absent = *last
		}
		for _, b := range order {
			if b == missing {
				break
			}
			left.add(buckets[b])
			at := split{dimension: dimension, bucket: b, kind: defaultRight}
			c.pair(left, sums{total.g - left.g, total.h - left.h}, at)
			at.kind = defaultLeft
			c.pair(sums{left.g + absent.g, left.h + absent.h}, sums{total.g - absent.g - left.g, total.h - absent.h - left.h}, at)
		}
	}
	c.best.gain -= parent
	return c.best, c.found
}

// pair considers a split into two leaves with one logit.
func (c *candidates) pair(left, right sums, at split) {
	lw, lg := c.single(left.g, left.h)
	rw, rg := c.single(right.g, right.h)
	if gain := lg + rg; larger(gain, c.best.gain) {
		at.node, at.gain, at.left, at.right = c.best.node, gain, []float32{lw}, []float32{rw}
		c.best, c.found = at, true
	}
}
