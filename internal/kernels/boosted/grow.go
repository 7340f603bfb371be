package boosted

import (
	"context"
	"maps"
	"math"
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Pruning modes.
const (
	prePruning  = 1 // splits with negative gain are not made
	postPruning = 2 // splits with negative gain are removed when the tree is complete
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesUpdateEnsemble", Doc: "Adds a layer to the last tree of an ensemble: the best split of each node.",
		In: []string{
			"tree_ensemble_handle: resource", "feature_ids: int32", "node_ids: num_features * int32", "gains: num_features * float32",
			"thresholds: num_features * int32", "left_node_contribs: num_features * float32", "right_node_contribs: num_features * float32",
			"max_depth: int32", "learning_rate: float32",
		},
		Attrs: []string{"pruning_mode: int >= 0", "num_features: int >= 0"}, Stateful: true, Shape: opdef.UnknownShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		n, mode := c.Attrs.Int("num_features"), int32(c.Attrs.Int("pruning_mode")) //nolint:gosec // a mode
		a := arguments{groups: 1, features: n, logits: 1, nodes: 2, gains: 2 + n, buckets: 2 + 2*n, left: 2 + 3*n, right: 2 + 4*n, depth: 2 + 5*n}
		return kernel.Func(func(ctx *kernel.Context) error { return update(ctx, &a, mode) }), nil
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesUpdateEnsembleV2",
		Doc:  "Adds a layer to the last tree of an ensemble, as BoostedTreesUpdateEnsemble does, from splits of several kinds.",
		In: []string{
			"tree_ensemble_handle: resource", "feature_ids: num_groups * int32", "dimension_ids: num_features * int32",
			"node_ids: num_features * int32", "gains: num_features * float32", "thresholds: num_features * int32",
			"left_node_contribs: num_features * float32", "right_node_contribs: num_features * float32", "split_types: num_features * string",
			"max_depth: int32", "learning_rate: float32", "pruning_mode: int32",
		},
		Attrs: []string{"num_features: int >= 0", "logits_dimension: int = 1", "num_groups: int >= 1 = 1"}, Stateful: true, Shape: opdef.UnknownShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		n, first := c.Attrs.Int("num_features"), 1+c.Attrs.Int("num_groups")
		a := arguments{
			groups: first - 1, features: n, logits: c.Attrs.Int("logits_dimension"), dimensions: first, nodes: first + n, gains: first + 2*n,
			buckets: first + 3*n, left: first + 4*n, right: first + 5*n, kinds: first + 6*n, depth: first + 7*n,
		}
		if a.logits < 1 {
			return nil, status.InvalidArgumentf("logits_dimension must be positive, got %d", a.logits)
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			mode, err := scalar[int32](ctx, a.depth+2, "pruning_mode")
			if err != nil {
				return err
			}
			return update(ctx, &a, mode)
		}), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "BoostedTreesCenterBias",
		Doc:  "Adds the logits that fit all examples to the root of the first tree. Returns false when they have stopped changing.",
		In: []string{
			"tree_ensemble_handle: resource", "mean_gradients: float32", "mean_hessians: float32", "l1: float32", "l2: float32",
		},
		Out: []string{"continue_centering: bool"}, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			if err := shapefn.CheckRanks(c, 1, 2, 2, 0, 0); err != nil {
				return err
			}
			return opdef.ScalarShape(c)
		},
	}, centerBias)
}

// arguments are the positions of the inputs of an operation that grows a tree. Each argument has an
// input for each feature.
type arguments struct {
	groups, features, logits                              int
	dimensions, nodes, gains, buckets, left, right, kinds int // 0 if there is none
	depth                                                 int // followed by the learning rate
}

// splits returns the best split for each node.
func (a *arguments) splits(ctx *kernel.Context, rate float32) (map[int32]split, error) {
	best := map[int32]split{}
	var meter membudget.Meter
	for f := range a.features {
		all, err := a.feature(ctx, f, rate)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			old, found := best[s.node]
			if !found {
				meter.MustTakeEntry(4 * int(unsafe.Sizeof(s))) // a map has up to four slots each
			}
			if !found || larger(s.gain, old.gain) && !same(s.gain, old.gain) || same(s.gain, old.gain) && s.feature < old.feature {
				best[s.node] = s
			}
		}
	}
	return best, nil
}

// feature returns the splits of one feature.
func (a *arguments) feature(ctx *kernel.Context, f int, rate float32) ([]split, error) {
	nodes, err := vector[int32](ctx, a.nodes+f, "node_ids")
	if err != nil {
		return nil, err
	}
	all := membudget.Make[split](len(nodes))
	gains, err := vector[float32](ctx, a.gains+f, "gains")
	if err != nil {
		return nil, err
	}
	buckets, err := vector[int32](ctx, a.buckets+f, "thresholds")
	if err != nil {
		return nil, err
	}
	left, err := matrixOf[float32](ctx, a.left+f, "left_node_contribs")
	if err != nil {
		return nil, err
	}
	right, err := matrixOf[float32](ctx, a.right+f, "right_node_contribs")
	if err != nil {
		return nil, err
	}
	n := len(nodes)
	if len(gains) != n || len(buckets) != n || left.rows != n || right.rows != n || left.cols < a.logits || right.cols < a.logits {
		return nil, status.InvalidArgumentf("the splits of feature %d have %d nodes, %d gains, %d thresholds and contributions of shape %v and %v",
			f, n, len(gains), len(buckets), ctx.Input(a.left+f).Shape(), ctx.Input(a.right+f).Shape())
	}
	weights := membudget.Make[float32](2 * n * a.logits)
	scaled := func(v []float32) []float32 {
		out := weights[:a.logits:a.logits]
		weights = weights[a.logits:]
		for i, x := range v[:a.logits] {
			out[i] = rate * x
		}
		return out
	}
	for i := range all {
		all[i] = split{
			node: nodes[i], gain: gains[i], bucket: buckets[i], kind: defaultLeft,
			left: scaled(left.row(i)), right: scaled(right.row(i)),
		}
	}
	if err := a.details(ctx, f, all); err != nil {
		return nil, err
	}
	return all, a.numbers(ctx, f, all)
}

// details reads the dimensions and the kinds of splits.
func (a *arguments) details(ctx *kernel.Context, f int, all []split) error {
	if a.dimensions == 0 {
		return nil
	}
	dimensions, err := vector[int32](ctx, a.dimensions+f, "dimension_ids")
	if err != nil {
		return err
	}
	kinds, err := vector[string](ctx, a.kinds+f, "split_types")
	if err != nil {
		return err
	}
	if len(dimensions) != len(all) || len(kinds) != len(all) {
		return status.InvalidArgumentf("the %d splits of feature %d have %d dimensions and %d types", len(all), f, len(dimensions), len(kinds))
	}
	for i := range all {
		all[i].dimension, all[i].kind = dimensions[i], kinds[i]
		if !slices.Contains([]string{defaultLeft, defaultRight, equality}, kinds[i]) {
			return status.Internalf("Parse failed")
		}
	}
	return nil
}

// numbers sets the numbers of the features. There is one for each feature or, if there is a vector
// for each feature, one for each split.
func (a *arguments) numbers(ctx *kernel.Context, f int, all []split) error {
	perSplit := a.groups == a.features
	ids, err := vector[int32](ctx, 1+f%a.groups, "feature_ids")
	if err != nil {
		return err
	}
	if perSplit && len(ids) == len(all) {
		for i := range all {
			all[i].feature = ids[i]
		}
		return nil
	}
	if a.groups != 1 || len(ids) != a.features {
		return status.InvalidArgumentf("feature_ids must have an element for each of %d features, or for each split, got %d", a.features, len(ids))
	}
	for i := range all {
		all[i].feature = ids[f]
	}
	return nil
}

// update adds a layer.
func update(ctx *kernel.Context, a *arguments, mode int32) error {
	e, err := resource.Find[*ensemble](ctx, 0)
	if err != nil {
		return err
	}
	depth, err := scalar[int32](ctx, a.depth, "max_depth")
	if err != nil {
		return err
	}
	rate, err := scalar[float32](ctx, a.depth+1, "learning_rate")
	if err != nil {
		return err
	}
	best, err := a.splits(ctx, rate)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stamp++
	return e.grow(ctx.Context(), best, a.logits, depth, mode)
}

// grow adds splits to the last tree. The caller holds the lock.
func (e *ensemble) grow(ctx context.Context, best map[int32]split, logits int, depth, mode int32) error {
	e.growing.known = true
	e.growing.layers++
	n := len(e.trees)
	if n == 0 || (n == 1 || e.trees[n-2].finalized) && len(e.trees[n-1].nodes) == 1 {
		e.growing.trees++ // the first layer of a tree
	}
	if n == 0 {
		e.addTree(leafOf(membudget.Make[float32](logits)))
	}
	t := e.trees[len(e.trees)-1]
	start := int32(len(t.nodes))
	membudget.MustTake(int64(len(best)) * int64(8*logits)) // the logits of new leaves
	for _, node := range slices.Sorted(maps.Keys(best)) {
		if s := best[node]; mode != prePruning || s.gain >= 0 {
			if err := t.split(s); err != nil {
				return err
			}
		}
	}
	end := int32(len(t.nodes))
	if start == end {
		return nil
	}
	t.layers++
	if t.layers >= depth {
		start, end = 0, 1 // the next tree begins with its root
		if mode == postPruning {
			if err := t.prune(ctx, logits); err != nil {
				return err
			}
		}
		t.finalized = true
		e.addTree(leafOf(membudget.Make[float32](logits)))
	}
	e.growing.layerStart, e.growing.layerEnd = start, end
	return nil
}

// minBiasChange is the relative change of the bias from which centering continues.
const minBiasChange = 0.01

// centerBias runs BoostedTreesCenterBias.
func centerBias(ctx *kernel.Context) error {
	e, err := resource.Find[*ensemble](ctx, 0)
	if err != nil {
		return err
	}
	gradients, err := matrixOf[float32](ctx, 1, "mean_gradients")
	if err != nil {
		return err
	}
	hessians, err := matrixOf[float32](ctx, 2, "mean_hessians")
	if err != nil {
		return err
	}
	var r regularization
	for i, p := range []*float32{&r.l1, &r.l2} {
		if *p, err = scalar[float32](ctx, 3+i, []string{"l1", "l2"}[i]); err != nil {
			return err
		}
	}
	if gradients.cols != 1 {
		return status.Internalf("Expected logits_dim == 1, got %d", gradients.cols)
	}
	if gradients.rows == 0 || len(hessians.values) == 0 {
		return status.InvalidArgumentf("mean_gradients and mean_hessians must not be empty")
	}
	weight, _ := r.single(gradients.values[0], hessians.values[0])
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stamp++
	if len(e.trees) == 0 {
		e.addTree(leaf{scalar: weight})
		ctx.SetOutput(0, tensor.Scalar(true))
		return nil
	}
	root := &e.trees[0].nodes[0]
	if root.kind != leafNode || root.leaf.many {
		return status.Internalf("Expected current_biases.size() == 1, got %d", len(root.logits()))
	}
	ctx.SetOutput(0, tensor.Scalar(math.Abs(float64(weight/root.leaf.scalar)) > minBiasChange))
	root.leaf.scalar += weight
	return nil
}
