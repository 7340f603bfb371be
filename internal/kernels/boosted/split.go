package boosted

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Kinds of splits, with the names that operations use.
const (
	defaultLeft  = "INEQUALITY_DEFAULT_LEFT"  // values up to the threshold and missing ones go left
	defaultRight = "INEQUALITY_DEFAULT_RIGHT" // values up to the threshold go left
	equality     = "EQUALITY_DEFAULT_RIGHT"   // the value itself goes left
)

// split is the best split of a node that has been found.
type split struct {
	node              int32
	gain              float32
	feature           int32
	dimension, bucket int32
	left, right       []float32 // weights of the new leaves
	kind              string
}

// memory returns the number of bytes of the weights of s.
func (s *split) memory() int { return 4 * (cap(s.left) + cap(s.right)) }

// splitting holds the parameters of a search for splits.
type splitting struct {
	regularization
	complexity, minWeight float32
	first, last           int32 // nodes first to last-1
	progress              stepctx.Progress
}

// read reads the range of nodes from input 0, and the other parameters from the inputs from i on.
func (s *splitting) read(ctx *kernel.Context, i int) error {
	nodes, err := vector[int32](ctx, 0, "node_id_range")
	if err != nil {
		return err
	}
	if len(nodes) != 2 {
		return status.InvalidArgumentf("node_id_range should have 2 entries, got: %d", len(nodes))
	}
	s.first, s.last = nodes[0], nodes[1]
	for j, p := range []*float32{&s.l1, &s.l2, &s.complexity, &s.minWeight} {
		if *p, err = scalar[float32](ctx, i+j, []string{"l1", "l2", "tree_complexity", "min_node_weight"}[j]); err != nil {
			return err
		}
	}
	return nil
}

// checkNodes checks that statistics of n nodes contain all nodes of the search.
func (s *splitting) checkNodes(n int) error {
	if s.first < s.last && (s.first < 0 || int(s.last) > n) {
		return status.InvalidArgumentf("node_id_range [%d, %d) is not within the %d nodes of the statistics", s.first, s.last, n)
	}
	return nil
}

// checkPenalties checks the regularization for a number of logits.
func (s *splitting) checkPenalties(logits int) error {
	switch {
	case s.l1 < 0:
		return status.InvalidArgumentf("l1 = %v but it should be >= 0", s.l1)
	case logits > 1 && s.l1 != 0:
		return status.InvalidArgumentf("l1 != 0 is not yet supported for multi-class regularization")
	case s.l2 < 0:
		return status.InvalidArgumentf("l2 = %v but it should be >= 0", s.l2)
	}
	return nil
}

// candidates finds the best split of one node.
type candidates struct {
	regularization
	best  split
	found bool
}

func newCandidates(r regularization, node int32) *candidates {
	return &candidates{regularization: r, best: split{node: node, gain: -math.MaxFloat32}}
}

// try considers the split whose left leaf has the sums g and h, of the sums of the whole node.
func (c *candidates) try(g, h, totalG, totalH []float32, at split) {
	var gain float32
	at.left, gain = c.leaf(g, h)
	right, more := c.leaf(minus(totalG, g), minus(totalH, h))
	at.right = right
	if gain += more; larger(gain, c.best.gain) {
		at.node, at.gain = c.best.node, gain
		c.best, c.found = at, true
	}
}

func minus(a, b []float32) []float32 {
	out := membudget.Make[float32](len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// sum returns a + b.
func sum(a, b []float32) []float32 {
	out := membudget.Make[float32](len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// plus adds b to a.
func plus(a, b []float32) {
	for i, v := range b {
		a[i] += v
	}
}

// denseStats are the statistics of one feature: [nodes, dimensions, buckets+1, stats].
type denseStats struct {
	values                            []float32
	nodes, dimensions, buckets, width int
	logits                            int
}

func denseStatsOf(t *tensor.Tensor, logits int) (d denseStats, err error) {
	if t.Rank() != 4 {
		return d, status.InvalidArgumentf("stats_summary argument must have rank 4")
	}
	d = denseStats{tensor.Values[float32](t), t.Dim(0), t.Dim(1), t.Dim(2) - 1, t.Dim(3), logits}
	switch hessians := d.width - logits; {
	case hessians <= 0:
		return d, status.InvalidArgumentf("hessian dim should be < 0, got %d", hessians)
	case hessians > logits*logits:
		return d, status.InvalidArgumentf("hessian dim should be <= %d but got: %d", logits*logits, hessians)
	case d.buckets < 0 || d.dimensions == 0:
		return d, status.InvalidArgumentf("stats_summary must have buckets and dimensions, got shape %v", t.Shape())
	}
	return d, nil
}

// at returns the gradients and hessians of a bucket.
func (d *denseStats) at(node, dimension, bucket int) (g, h []float32) {
	row := d.values[((node*d.dimensions+dimension)*(d.buckets+1)+bucket)*d.width:][:d.width]
	return row[:d.logits], row[d.logits:]
}

// total returns the sums over all buckets.
func (d *denseStats) total(node, dimension int) (g, h []float32) {
	g, h = membudget.Make[float32](d.logits), membudget.Make[float32](d.width-d.logits)
	for b := range d.buckets + 1 {
		bg, bh := d.at(node, dimension, b)
		plus(g, bg)
		plus(h, bh)
	}
	return g, h
}

// inequalities tries all thresholds of all dimensions of a feature, until the step ends.
func (c *candidates) inequalities(p *stepctx.Progress, d *denseStats, feature int32) error {
	node := int(c.best.node)
	for dimension := range d.dimensions {
		totalG, totalH := d.total(node, dimension)
		missingG, missingH := d.at(node, dimension, d.buckets)
		g, h := membudget.Make[float32](len(totalG)), membudget.Make[float32](len(totalH))
		for b := range d.buckets {
			if err := p.Pass(d.work()); err != nil {
				return err
			}
			bg, bh := d.at(node, dimension, b)
			plus(g, bg)
			plus(h, bh)
			at := split{feature: feature, dimension: int32(dimension), bucket: int32(b), kind: defaultLeft}
			c.try(sum(g, missingG), sum(h, missingH), totalG, totalH, at)
			at.kind = defaultRight
			c.try(g, h, totalG, totalH, at)
		}
	}
	return nil
}

// equalities tries all values of all dimensions of a feature, until the step ends. The sums are
// those of the whole node.
func (c *candidates) equalities(p *stepctx.Progress, d *denseStats, feature int32, totalG, totalH []float32) error {
	for dimension := range d.dimensions {
		for b := range d.buckets {
			if err := p.Pass(d.work()); err != nil {
				return err
			}
			g, h := d.at(int(c.best.node), dimension, b)
			c.try(g, h, totalG, totalH, split{feature: feature, dimension: int32(dimension), bucket: int32(b), kind: equality})
		}
	}
	return nil
}

// work is about the time of a candidate: a full matrix of hessians is factored.
func (d *denseStats) work() int { return d.width * d.logits }

func norm(v []float32) float32 {
	var squares float32
	for _, x := range v {
		squares += x * x
	}
	return float32(math.Sqrt(float64(squares)))
}

// setSplits sets the outputs of an operation to splits. Its outputs are node_ids, gains,
// feature_ids if ids is set, feature_dimensions, thresholds, left_node_contribs,
// right_node_contribs and split_with_default_directions.
func setSplits(ctx *kernel.Context, all []split, logits int, complexity float32, ids bool) error {
	n := len(all)
	nodes, features, dimensions := membudget.Make[int32](n), membudget.Make[int32](n), membudget.Make[int32](n)
	buckets, gains, kinds := membudget.Make[int32](n), membudget.Make[float32](n), membudget.Make[string](n)
	var left, right []float32
	for i, s := range all {
		nodes[i], features[i], dimensions[i], buckets[i] = s.node, s.feature, s.dimension, s.bucket
		gains[i], kinds[i] = s.gain-complexity, s.kind
		left, right = membudget.AppendAll(left, s.left...), membudget.AppendAll(right, s.right...)
	}
	i := 0
	ints := func(v []int32) error { i++; return setVector(ctx, i-1, v) }
	if err := ints(nodes); err != nil {
		return err
	}
	i++
	if err := setVector(ctx, i-1, gains); err != nil {
		return err
	}
	columns := [][]int32{dimensions, buckets}
	if ids {
		columns = [][]int32{features, dimensions, buckets}
	}
	for _, column := range columns {
		if err := ints(column); err != nil {
			return err
		}
	}
	for _, contribs := range [][]float32{left, right} {
		if err := set(ctx, i, tensor.Shape{int64(n), int64(logits)}, contribs); err != nil {
			return err
		}
		i++
	}
	return setVector(ctx, i, kinds)
}

// splitShape is the shape function of operations that find splits. The inputs after the range of
// nodes have the given ranks, and then there are four scalars.
func splitShape(c *opdef.ShapeContext, ranks ...int) error {
	if _, err := opdef.MergeShapes(c.In[0], shapefn.Of(2)); err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 1, ranks...); err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, len(c.In)-4, 0, 0, 0, 0); err != nil {
		return err
	}
	for i := range c.Out {
		c.Out[i] = shapefn.Of(shapefn.Unknown)
	}
	logits := int64(c.Attrs.Int("logits_dimension"))
	c.Out[len(c.Out)-3], c.Out[len(c.Out)-2] = shapefn.Of(shapefn.Unknown, logits), shapefn.Of(shapefn.Unknown, logits)
	return nil
}
