package boosted

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	params := []string{"l1: float32", "l2: float32", "tree_complexity: float32", "min_node_weight: float32"}
	results := []string{
		"feature_dimensions: int32", "thresholds: int32", "left_node_contribs: float32", "right_node_contribs: float32",
		"split_with_default_directions: string",
	}
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesCalculateBestGainsPerFeature", Doc: "Finds the best threshold for each node and each of several features with one dimension.",
		In: slices.Concat([]string{"node_id_range: int32", "stats_summary_list: num_features * float32"}, params),
		Out: []string{
			"node_ids_list: num_features * int32", "gains_list: num_features * float32", "thresholds_list: num_features * int32",
			"left_node_contribs_list: num_features * float32", "right_node_contribs_list: num_features * float32",
		},
		Attrs: []string{"max_splits: int >= 1", "num_features: int >= 1"}, Shape: gainsShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		features := c.Attrs.Int("num_features")
		return kernel.Func(func(ctx *kernel.Context) error { return bestGains(ctx, features) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesCalculateBestFeatureSplit", Doc: "Finds the best split of each node by one feature.",
		In:    slices.Concat([]string{"node_id_range: int32", "stats_summary: float32"}, params),
		Out:   slices.Concat([]string{"node_ids: int32", "gains: float32"}, results),
		Attrs: []string{"logits_dimension: int >= 1", "split_type: {'inequality', 'equality'} = 'inequality'"},
		Shape: func(c *opdef.ShapeContext) error { return splitShape(c, 4) },
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		logits, kinds := c.Attrs.Int("logits_dimension"), []string{c.Attrs.String("split_type")}
		return kernel.Func(func(ctx *kernel.Context) error {
			return bestSplits(ctx, logits, 1, func() ([]string, []int32, error) { return kinds, []int32{0}, nil }, false)
		}), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesCalculateBestFeatureSplitV2", Doc: "Finds the best split of each node by any of several features.",
		In: slices.Concat([]string{
			"node_id_range: int32", "stats_summaries_list: num_features * float32", "split_types: string", "candidate_feature_ids: int32",
		}, params),
		Out:   slices.Concat([]string{"node_ids: int32", "gains: float32", "feature_ids: int32"}, results),
		Attrs: []string{"num_features: int >= 1", "logits_dimension: int >= 1"},
		Shape: func(c *opdef.ShapeContext) error {
			//sizedmake:ok one for each input
			return splitShape(c, append(slices.Repeat([]int{4}, c.Attrs.Int("num_features")), 1, 1)...)
		},
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		logits, features := c.Attrs.Int("logits_dimension"), c.Attrs.Int("num_features")
		return kernel.Func(func(ctx *kernel.Context) error {
			return bestSplits(ctx, logits, features, func() (kinds []string, ids []int32, err error) {
				if kinds, err = vector[string](ctx, 1+features, "split_types"); err != nil {
					return nil, nil, err
				}
				ids, err = vector[int32](ctx, 2+features, "candidate_feature_ids")
				return kinds, ids, err
			}, true)
		}), nil
	})
}

func gainsShape(c *opdef.ShapeContext) error {
	if _, err := opdef.MergeShapes(c.In[0], shapefn.Of(2)); err != nil {
		return err
	}
	features := c.Attrs.Int("num_features")
	summary := shapefn.Of(int64(c.Attrs.Int("max_splits")), shapefn.Unknown, 2)
	for i := range features {
		var err error
		if summary, err = opdef.MergeShapes(c.In[1+i], summary); err != nil {
			return err
		}
	}
	if err := shapefn.CheckRanks(c, 1+features, 0, 0, 0, 0); err != nil {
		return err
	}
	for i := range c.Out {
		c.Out[i] = shapefn.Of(shapefn.Unknown)
		if i >= 3*features {
			c.Out[i] = shapefn.Of(shapefn.Unknown, 1)
		}
	}
	return nil
}

// bestGains runs BoostedTreesCalculateBestGainsPerFeature.
func bestGains(ctx *kernel.Context, features int) error {
	var s splitting
	if err := s.read(ctx, 1+features); err != nil {
		return err
	}
	for f := range features {
		t := ctx.Input(1 + f)
		if t.Rank() != 3 || t.Dim(2) != 2 {
			return status.InvalidArgumentf("stats_summary_list[%d] must have the shape [max_splits, num_buckets, 2], got %v", f, t.Shape())
		}
		if err := s.checkNodes(t.Dim(0)); err != nil {
			return err
		}
		var found []split
		var meter membudget.Meter
		p := stepctx.Progress{Context: ctx.Context(), Each: 64}
		for node := s.first; node < s.last; node++ {
			if err := p.Pass(8 * t.Dim(1)); err != nil {
				return err
			}
			row := tensor.Values[float32](t)[int(node)*t.Dim(1)*2:][:t.Dim(1)*2]
			if best, ok := s.threshold(node, row); ok {
				meter.MustTake(best.memory())
				found = membudget.Append(found, best)
			}
		}
		if err := setGains(ctx, found, f, features, s.complexity); err != nil {
			return err
		}
	}
	return nil
}

// threshold returns the best threshold of a node, whose buckets hold a gradient and a hessian each.
func (s *splitting) threshold(node int32, row []float32) (split, bool) {
	var total, left [2]float32
	for pair := range slices.Chunk(row, 2) {
		total[0] += pair[0]
		total[1] += pair[1]
	}
	if total[1] < s.minWeight {
		return split{}, false
	}
	c := newCandidates(s.regularization, node)
	c.best.left, c.best.right = []float32{0}, []float32{0}
	_, parent := s.single(total[0], total[1])
	bucket := int32(0)
	for pair := range slices.Chunk(row, 2) {
		left[0] += pair[0]
		left[1] += pair[1]
		c.try(left[:1], left[1:], total[:1], total[1:], split{bucket: bucket})
		bucket++
	}
	c.best.gain -= parent
	return c.best, true
}

// setGains sets the outputs of feature f.
func setGains(ctx *kernel.Context, found []split, f, features int, complexity float32) error {
	var nodes, buckets []int32
	var gains, left, right []float32
	for _, s := range found {
		nodes, buckets = membudget.Append(nodes, s.node), membudget.Append(buckets, s.bucket)
		gains = membudget.Append(gains, s.gain-complexity)
		left, right = membudget.AppendAll(left, s.left...), membudget.AppendAll(right, s.right...)
	}
	column := tensor.Shape{int64(len(found)), 1}
	for _, err := range []error{
		setVector(ctx, f, nodes), setVector(ctx, features+f, gains), setVector(ctx, 2*features+f, buckets),
		set(ctx, 3*features+f, column, left), set(ctx, 4*features+f, column, right),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// bestSplits runs both versions of BoostedTreesCalculateBestFeatureSplit. kinds returns the type of
// splits and the number of each feature.
func bestSplits(ctx *kernel.Context, logits, features int, kinds func() ([]string, []int32, error), ids bool) error {
	var s splitting
	if err := s.read(ctx, ctx.NumInputs()-4); err != nil {
		return err
	}
	if err := s.checkPenalties(logits); err != nil {
		return err
	}
	types, numbers, err := kinds()
	if err != nil {
		return err
	}
	if len(types) != features || len(numbers) != features {
		return status.InvalidArgumentf("split_types and candidate_feature_ids must have %d elements, got %d and %d", features, len(types), len(numbers))
	}
	all := make([]denseStats, features) //sizedmake:ok one for each input
	for f := range all {
		if all[f], err = denseStatsOf(ctx.Input(1+f), logits); err != nil {
			return err
		}
		if err := s.checkNodes(all[f].nodes); err != nil {
			return err
		}
	}
	var found []split
	var meter membudget.Meter
	s.progress = stepctx.Progress{Context: ctx.Context(), Each: 64}
	for node := s.first; node < s.last; node++ {
		if err := s.progress.Pass(0); err != nil {
			return err
		}
		totalG, totalH := all[0].total(int(node), 0)
		if norm(totalH) < s.minWeight {
			continue
		}
		_, parent := s.leaf(totalG, totalH)
		c := newCandidates(s.regularization, node)
		for f := range all {
			if types[f] == "inequality" {
				err = c.inequalities(&s.progress, &all[f], numbers[f])
			} else {
				err = c.equalities(&s.progress, &all[f], numbers[f], totalG, totalH)
			}
			if err != nil {
				return err
			}
		}
		if c.found {
			c.best.gain -= parent
			meter.MustTake(c.best.memory())
			found = membudget.Append(found, c.best)
		}
	}
	return setSplits(ctx, found, logits, s.complexity, ids)
}
