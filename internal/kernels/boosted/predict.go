package boosted

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const features = "bucketized_features: num_bucketized_features * int32"
	attrs := []string{"num_bucketized_features: int >= 1", "logits_dimension: int"}
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesPredict", Doc: "Computes the logits of examples.",
		In: []string{"tree_ensemble_handle: resource", features}, Out: []string{"logits: float32"}, Attrs: attrs, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			n, err := batchShape(c, 1)
			c.Out[0] = shapefn.Of(n, int64(c.Attrs.Int("logits_dimension")))
			return err
		},
	}, newPrediction(1, func(ctx *kernel.Context, p *prediction) error { return p.logits(ctx) }))
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesTrainingPredict",
		Doc:  "Computes the change of the logits of examples since they were at the given nodes, and their new nodes.",
		In:   []string{"tree_ensemble_handle: resource", "cached_tree_ids: int32", "cached_node_ids: int32", features},
		Out:  []string{"partial_logits: float32", "tree_ids: int32", "node_ids: int32"}, Attrs: attrs, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			n, err := batchShape(c, 3)
			if err != nil {
				return err
			}
			for i := 1; i <= 2; i++ {
				if _, err := opdef.MergeShapes(c.In[i], shapefn.Of(n)); err != nil {
					return err
				}
			}
			c.Out[0], c.Out[1], c.Out[2] = shapefn.Of(n, int64(c.Attrs.Int("logits_dimension"))), shapefn.Of(n), shapefn.Of(n)
			return nil
		},
	}, newPrediction(3, func(ctx *kernel.Context, p *prediction) error { return p.continued(ctx) }))
	kernel.RegisterNew(opdef.Def{
		Name: "BoostedTreesExampleDebugOutputs",
		Doc:  "Returns the features and the logits on the path of each example, as serialized DebugOutput messages.",
		In:   []string{"tree_ensemble_handle: resource", features}, Out: []string{"examples_debug_outputs_serialized: string"},
		Attrs: attrs, Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			n, err := batchShape(c, 1)
			c.Out[0] = shapefn.Of(n)
			return err
		},
	}, newPrediction(1, func(ctx *kernel.Context, p *prediction) error { return p.paths(ctx) }))
}

// batchShape returns the number of examples, which all features from input first on have.
func batchShape(c *opdef.ShapeContext, first int) (int64, error) {
	n := shapefn.Unknown
	for _, in := range c.In[first:] {
		in, err := opdef.WithRankAtMost(in, 2)
		if err == nil {
			in, err = opdef.WithRankAtLeast(in, 1)
		}
		if err != nil {
			return n, err
		}
		if n, err = opdef.MergeDims(n, dim(in, 0)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// feature is a bucketized feature of a batch of examples.
type feature struct {
	matrix[int32]
	single bool // a vector, which has one dimension for every split
}

// at returns the bucket of an example.
func (f *feature) at(example int, dimension int32) (int32, error) {
	if f.single {
		return f.values[example], nil
	}
	if dimension < 0 || int(dimension) >= f.cols {
		return 0, status.InvalidArgumentf("a tree uses dimension %d of a feature with %d dimensions", dimension, f.cols)
	}
	return f.row(example)[dimension], nil
}

// prediction is a run of trees on a batch of examples. It holds the read lock of the ensemble.
type prediction struct {
	*ensemble
	features []feature
	batch    int
	width    int // logits
}

func newPrediction(first int, run func(*kernel.Context, *prediction) error) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		width := c.Attrs.Int("logits_dimension")
		if width < 1 {
			return nil, status.InvalidArgumentf("logits_dimension must be positive, got %d", width)
		}
		if c.Op.Name == "BoostedTreesExampleDebugOutputs" && width != 1 {
			return nil, status.InvalidArgumentf("Currently only one dimensional outputs are supported.")
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			e, err := resource.Find[*ensemble](ctx, 0)
			if err != nil {
				return err
			}
			e.mu.RLock()
			defer e.mu.RUnlock()
			p := &prediction{ensemble: e, width: width}
			for i := first; i < ctx.NumInputs(); i++ {
				t := ctx.Input(i)
				f := feature{matrix[int32]{tensor.Values[int32](t), 0, 1}, t.Rank() == 1}
				if t.Rank() != 1 && t.Rank() != 2 {
					return status.InvalidArgumentf("bucketized_features must be vectors or matrices, got shape %v", t.Shape())
				}
				f.rows = t.Dim(0)
				if !f.single {
					f.cols = t.Dim(1)
				}
				if i > first && f.rows != p.batch {
					return status.InvalidArgumentf("bucketized_features must have the same batch size, got %d and %d", p.batch, f.rows)
				}
				p.batch = f.rows
				p.features = append(p.features, f)
			}
			return run(ctx, p)
		}), nil
	}
}

// each calls f for every example, on several cores, and returns the first error.
func (p *prediction) each(ctx *kernel.Context, f func(example int) error) error {
	return parallel.Each(ctx.Context(), p.batch, max(1, 1000/max(1, len(p.trees))), f)
}

// add adds weight times the logits of a leaf to sum.
func (p *prediction) add(sum []float32, weight float32, logits []float32) error {
	if len(logits) != p.width {
		return status.Internalf("Expected leaf_logits.size() == logits_dimension_, got %d vs %d", len(logits), p.width)
	}
	for j, v := range logits {
		sum[j] += weight * v
	}
	return nil
}

// logits runs BoostedTreesPredict.
func (p *prediction) logits(ctx *kernel.Context) error {
	out, err := ctx.AllocateZeros(0, tensor.Shape{int64(p.batch), int64(p.width)})
	if err != nil {
		return err
	}
	all := tensor.Values[float32](out)
	return p.each(ctx, func(i int) error {
		sum := all[i*p.width : (i+1)*p.width]
		for _, t := range p.trees {
			n, err := t.descend(0, p.features, i)
			if err != nil {
				return err
			}
			if err := p.add(sum, t.weight, t.nodes[n].leaf.values()); err != nil {
				return err
			}
		}
		return nil
	})
}

// descend returns the leaf below a node that an example belongs to.
func (t *tree) descend(from int32, features []feature, example int) (int32, error) {
	for t.nodes[from].kind != leafNode {
		var err error
		if from, err = t.nodes[from].next(features, example); err != nil {
			return 0, err
		}
	}
	return from, nil
}

// continued runs BoostedTreesTrainingPredict.
func (p *prediction) continued(ctx *kernel.Context) error {
	trees, err := vector[int32](ctx, 1, "cached_tree_ids")
	if err != nil {
		return err
	}
	nodes, err := vector[int32](ctx, 2, "cached_node_ids")
	if err != nil {
		return err
	}
	if len(trees) != p.batch || len(nodes) != p.batch {
		return status.InvalidArgumentf("cached_tree_ids and cached_node_ids must have %d elements, got %d and %d", p.batch, len(trees), len(nodes))
	}
	logits, err := ctx.AllocateZeros(0, tensor.Shape{int64(p.batch), int64(p.width)})
	if err != nil {
		return err
	}
	treeOut, err := ctx.Allocate(1, tensor.Shape{int64(p.batch)})
	if err != nil {
		return err
	}
	nodeOut, err := ctx.AllocateZeros(2, tensor.Shape{int64(p.batch)})
	if err != nil {
		return err
	}
	last := int32(len(p.trees)) - 1
	if last < 0 {
		copy(tensor.Values[int32](treeOut), trees)
		return nil
	}
	newTrees, newNodes, all := tensor.Values[int32](treeOut), tensor.Values[int32](nodeOut), tensor.Values[float32](logits)
	return p.each(ctx, func(i int) error {
		n, err := p.resume(all[i*p.width:(i+1)*p.width], trees[i], nodes[i], i)
		newTrees[i], newNodes[i] = last, n
		return err
	})
}

// resume adds to sum what the trees add to the logits of an example that was at a node of a tree.
// It returns the new node, which is one of the last tree.
func (p *prediction) resume(sum []float32, tree, at int32, example int) (int32, error) {
	t, err := p.tree(tree)
	if err != nil {
		return 0, err
	}
	known := membudget.Make[float32](p.width) // what the logits contain of this tree, negated
	if at < 0 {
		at = 0
	} else if at, err = t.cached(known, at); err != nil {
		return 0, err
	}
	for {
		if at, err = t.descend(at, p.features, example); err != nil {
			return 0, err
		}
		logits := t.nodes[at].leaf.values()
		if len(logits) != len(known) {
			return 0, status.Internalf("Expected leaf_logits.size() == logits_dimension_, got %d vs %d", len(logits), p.width)
		}
		for j, v := range logits {
			sum[j] += t.weight * (known[j] + v)
			known[j] = 0
		}
		if int(tree) == len(p.trees)-1 {
			return at, nil
		}
		tree, at = tree+1, 0
		t = p.trees[tree]
	}
}

// cached sets known to the negated logits of the node that an example was at, and returns that
// node: another one if the tree was pruned since.
func (t *tree) cached(known []float32, at int32) (int32, error) {
	if t.finalized && t.pruned != nil {
		if int(at) >= len(t.pruned) {
			return 0, status.InvalidArgumentf("node %d is not in [0, %d)", at, len(t.pruned))
		}
		copy(known, t.pruned[at].changes)
		at = t.pruned[at].node
	}
	n, err := t.node(at)
	if err != nil {
		return 0, err
	}
	logits := n.logits()
	if logits != nil && len(logits) != len(known) {
		return 0, status.Internalf("Expected node_logits.size() == logits_dimension_, got %d vs %d", len(logits), len(known))
	}
	for j, v := range logits {
		known[j] -= v
	}
	return at, nil
}

// paths runs BoostedTreesExampleDebugOutputs.
func (p *prediction) paths(ctx *kernel.Context) error {
	out, err := ctx.Allocate(0, tensor.Shape{int64(p.batch)})
	if err != nil {
		return err
	}
	if len(p.trees) == 0 {
		return status.InvalidArgumentf("the ensemble has no trees")
	}
	all := tensor.Values[string](out)
	return p.each(ctx, func(i int) error {
		text, err := p.path(i)
		all[i] = text
		return err
	})
}

// path returns the features that split an example, and the logits after each split.
func (p *prediction) path(example int) (string, error) {
	bias := p.trees[0].nodes[0].logits()
	if len(bias) != 1 {
		return "", status.Internalf("Expected tree_logits.size() == 1, got %d", len(bias))
	}
	var m, used message
	logit, before := p.trees[0].weight*bias[0], float32(0)
	logits := []float32{logit}
	for i, t := range p.trees {
		at := int32(0)
		for t.nodes[at].kind != leafNode {
			used = appendVarint(used, t.nodes[at].feature)
			var err error
			if at, err = t.nodes[at].next(p.features, example); err != nil {
				return "", err
			}
			values := t.nodes[at].logits()
			if len(values) != 1 {
				return "", status.Internalf("Expected tree_logits.size() == 1, got %d", len(values))
			}
			logit = t.weight * values[0]
			logits = membudget.Append(logits, logit+before)
		}
		if i == 0 || at > 0 { // the root of a later tree has no logits of its own
			before += logit
		}
	}
	// the text is kept for each example; the tags and lengths take little
	const framing = 32
	membudget.MustTake(int64(len(used)) + 4*int64(len(logits)) + framing)
	if len(used) > 0 {
		m.message(1, used)
	}
	m.floats(2, logits)
	return string(m), nil
}
