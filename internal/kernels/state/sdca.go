package state

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/weft-ml/weft/internal/numeric/farmhash"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, adaptive := range map[string]string{"SdcaOptimizer": "adaptative", "SdcaOptimizerV2": "adaptive"} {
		kernel.RegisterNew(opdef.Def{
			Name: name,
			Doc: "Trains a linear model on a batch by stochastic dual coordinate ascent. " +
				"Returns the changes of the weights, and the dual variable, primal loss, dual " +
				"loss and weight of each example.",
			In: []string{
				"sparse_example_indices: num_sparse_features * int64", "sparse_feature_indices: num_sparse_features * int64",
				"sparse_feature_values: num_sparse_features_with_values * float32", "dense_features: num_dense_features * float32",
				"example_weights: float32", "example_labels: float32", "sparse_indices: num_sparse_features * int64",
				"sparse_weights: num_sparse_features * float32", "dense_weights: num_dense_features * float32",
				"example_state_data: float32",
			},
			Out: []string{
				"out_example_state_data: float32", "out_delta_sparse_weights: num_sparse_features * float32",
				"out_delta_dense_weights: num_dense_features * float32",
			},
			Attrs: []string{
				"loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'}",
				adaptive + ": bool = false", "num_sparse_features: int >= 0", "num_sparse_features_with_values: int >= 0",
				"num_dense_features: int >= 0", "l1: float", "l2: float", "num_loss_partitions: int >= 1", "num_inner_iterations: int >= 1",
			},
			Shape: sdcaShape,
		}, func(c *kernel.Construction) (kernel.Kernel, error) { return newSDCA(c, adaptive) })
	}
	kernel.RegisterNew(opdef.Def{
		Name: "SdcaShrinkL1", Doc: "Shrinks variables toward zero by l1/l2.",
		In: []string{"weights: Ref(num_features * float32)"}, Attrs: []string{"num_features: int >= 0", "l1: float", "l2: float"},
		Shape: opdef.UnknownShape,
	}, newShrinkL1)
	kernel.RegisterFunc(opdef.Def{
		Name: "SdcaFprint", Doc: "Computes a 128-bit fingerprint of each string, as two int64 numbers.",
		In: []string{"input: string"}, Out: []string{"output: int64"},
		Shape: func(c *opdef.ShapeContext) error {
			in, err := opdef.WithRank(c.In[0], 1)
			c.Out[0] = shapefn.Concat(in, shapefn.Of(2))
			return err
		},
	}, func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() != 1 {
			return status.InvalidArgumentf("Input must be a vector, got shape %v", in.Shape())
		}
		out, err := ctx.Allocate(0, tensor.Shape{int64(in.NumElements()), 2})
		if err != nil {
			return err
		}
		z, p := tensor.Values[int64](out), stepctx.Progress{Context: ctx.Context(), Each: 32}
		for i, s := range tensor.Values[string](in) {
			if err := p.Pass(len(s)); err != nil {
				return err
			}
			lo, hi := farmhash.Fingerprint128([]byte(s))
			if lo < 2 { // 0 and 1 are reserved as markers
				lo += ^uint64(1)
			}
			z[2*i], z[2*i+1] = int64(lo), int64(hi)
		}
		return nil
	})
}

func sdcaShape(c *opdef.ShapeContext) error {
	c.Out[0] = shapefn.Of(shapefn.Unknown, 4)
	sparseFrom, sparseTo := c.ArgInputs("sparse_weights")
	denseFrom, denseTo := c.ArgInputs("dense_weights")
	n := 1 + copy(c.Out[1:], c.In[sparseFrom:sparseTo])
	copy(c.Out[n:], c.In[denseFrom:denseTo])
	return nil
}

// shrinking shrinks weights toward zero by l1/l2.
type shrinking struct {
	l2 float32
	by float64
}

func newShrinking(attrs opdef.Attrs) shrinking {
	l1, l2 := attrs.Float("l1"), attrs.Float("l2")
	return shrinking{l2: l2, by: float64(l1 / l2)}
}

// weight shrinks the weight of a sparse feature; NaN becomes 0.
func (s shrinking) weight(w float64) float64 {
	if left := math.Abs(w) - s.by; left > 0 {
		return math.Copysign(left, w)
	}
	return 0
}

// weight32 shrinks a weight of a tensor; zeros remain zero.
func (s shrinking) weight32(w float32) float32 {
	left := max(float32(math.Abs(float64(w)))-float32(s.by), 0)
	switch {
	case w > 0:
		return left
	case w < 0:
		return -left
	}
	return w * w * left // positive 0 or NaN
}

func newShrinkL1(c *kernel.Construction) (kernel.Kernel, error) {
	s := newShrinking(c.Attrs)
	return kernel.Func(func(ctx *kernel.Context) error {
		vars := membudget.Make[*kernel.Variable](ctx.NumInputs())
		for i := range vars {
			vars[i] = ctx.InputRef(i)
		}
		values, unlock := kernel.LockAll(vars...)
		defer unlock()
		for _, v := range values {
			own, err := ctx.Writable(v)
			if err != nil {
				return err
			}
			w := tensor.Values[float32](own)
			for i := range w {
				w[i] = s.weight32(w[i])
			}
		}
		return nil
	}), nil
}

// sdca is the kernel of the SDCA optimizer.
type sdca struct {
	loss       *dualLoss
	adaptive   bool
	partitions float64 // number of partitions of the examples trained concurrently
	shrink     shrinking
	first      map[string]int // index of the first input of each argument
	count      map[string]int // number of inputs of each argument
}

func newSDCA(c *kernel.Construction, adaptive string) (kernel.Kernel, error) {
	o := &sdca{
		loss: dualLosses[c.Attrs.String("loss_type")], adaptive: c.Attrs.Bool(adaptive),
		partitions: float64(c.Attrs.Int("num_loss_partitions")), shrink: newShrinking(c.Attrs),
		first: map[string]int{}, count: map[string]int{},
	}
	if c.Attrs.Int("num_sparse_features")+c.Attrs.Int("num_dense_features") <= 0 {
		return nil, status.InvalidArgumentf("Requires at least one feature to train.")
	}
	for _, arg := range c.Op.Inputs {
		lo, hi, err := c.InputRange(arg.Name)
		if err != nil {
			return nil, err
		}
		o.first[arg.Name], o.count[arg.Name] = lo, hi-lo
	}
	return o, nil
}

func (o *sdca) input(ctx *kernel.Context, arg string, i int) *tensor.Tensor {
	return ctx.Input(o.first[arg] + i)
}

// sparseGroup is a group of sparse features.
type sparseGroup struct {
	weights, deltas []float32
	at              map[int64]int // position of each feature's weight
	starts          []int         // start of each example's features, and the end of the last
	features        []int64
	values          []float32 // nil if all are 1
}

// denseGroup is a group of dense features.
type denseGroup struct {
	weights, deltas, features []float32
}

func (g *denseGroup) row(example int) []float32 {
	n := len(g.weights)
	return g.features[example*n : (example+1)*n]
}

// batch holds the examples of a step.
type batch struct {
	sparse          []sparseGroup
	dense           []denseGroup
	weights, labels []float32
	norms           []float64 // squared
}

// Compute implements kernel.Kernel.
func (o *sdca) Compute(ctx *kernel.Context) error {
	b, err := o.read(ctx)
	if err != nil {
		return err
	}
	before, n := o.input(ctx, "example_state_data", 0), len(b.weights)
	switch want := (tensor.Shape{int64(n), 4}); {
	case before.Rank() != 2:
		return status.InvalidArgumentf("example_state_data must be rank 2 but is rank %d", before.Rank())
	case !before.Shape().Equal(want):
		return status.InvalidArgumentf("Expected shape %v for example_state_data, got %v", want, before.Shape())
	}
	out, err := ctx.Allocate(0, before.Shape())
	if err != nil {
		return err
	}
	state := tensor.Values[float32](out)
	copy(state, tensor.Values[float32](before))
	order, err := o.order(ctx.Context(), b, state)
	if err != nil {
		return err
	}
	p := b.progress(ctx.Context())
	for _, i := range order {
		if err := p.Pass(0); err != nil {
			return err
		}
		label, err := o.loss.labels(b.labels[i])
		if err != nil {
			return err
		}
		o.step(b, i, float64(label), state[4*i:4*i+4])
	}
	return nil
}

// step updates the dual variable of an example and the weight changes.
func (o *sdca) step(b *batch, i int, label float64, state []float32) {
	weight, dual := float64(b.weights[i]), float64(state[0])
	before, now := o.predict(b, i)
	updated := o.loss.update(label, dual, now, o.partitions*b.norms[i]/float64(o.shrink.l2)*weight)
	b.move(i, (updated-dual)*weight/float64(o.shrink.l2))
	conjugate := o.loss.dual(label, dual)
	if conjugate != math.MaxFloat64 { // which represents infinity
		conjugate *= weight
	}
	state[0], state[1] = float32(updated), float32(o.loss.primal(label, before)*weight)
	state[2], state[3] = float32(conjugate), float32(weight)
}

// predict returns the predictions for an example with the weights before the step and with the
// updated weights.
func (o *sdca) predict(b *batch, i int) (before, now float64) {
	for j := range b.sparse {
		g := &b.sparse[j]
		for k := g.starts[i]; k < g.starts[i+1]; k++ {
			at, value := g.at[g.features[k]], g.value(k)
			before += value * o.shrink.weight(float64(g.weights[at]))
			now += value * o.shrink.weight(float64(g.weights[at]+g.deltas[at]*float32(o.partitions)))
		}
	}
	for j := range b.dense {
		g := &b.dense[j]
		var x, y float32
		for k, v := range g.row(i) {
			x += v * o.shrink.weight32(g.weights[k])
			y += v * o.shrink.weight32(g.weights[k]+g.deltas[k]*float32(o.partitions))
		}
		before, now = before+float64(x), now+float64(y)
	}
	return before, now
}

func (g *sparseGroup) value(k int) float64 {
	if g.values == nil {
		return 1
	}
	return float64(g.values[k])
}

// move adds an example, scaled by by, to the weight changes.
func (b *batch) move(i int, by float64) {
	for j := range b.sparse {
		g := &b.sparse[j]
		for k := g.starts[i]; k < g.starts[i+1]; k++ {
			d := &g.deltas[g.at[g.features[k]]]
			*d = float32(float64(*d) + g.value(k)*by)
		}
	}
	for j := range b.dense {
		g := &b.dense[j]
		for k, v := range g.row(i) {
			g.deltas[k] += v * float32(by)
		}
	}
}

// wordSize is the size of an int in bytes.
const wordSize = 8

// order returns the order of training. In adaptive mode some examples appear several times and
// others not at all. Then the time grows with the square of their number, and order returns an
// error when ctx ends.
func (o *sdca) order(ctx context.Context, b *batch, state []float32) ([]int, error) {
	if !o.adaptive {
		membudget.MustTake(wordSize * int64(len(b.weights)))
		return rand.Perm(len(b.weights)), nil
	}
	// The probability of an example grows with the distance of its dual variable from the optimum.
	// It is divided by ten each time the example is picked (Csiba and others, "Stochastic Dual
	// Coordinate Ascent with Adaptive Probabilities", 2015).
	odds := membudget.Make[float64](len(b.weights))
	p := b.progress(ctx)
	for i := range odds {
		if err := p.Pass(0); err != nil {
			return nil, err
		}
		label, err := o.loss.labels(b.labels[i])
		if err != nil {
			return []int{i}, nil // for which the step returns the error
		}
		_, wx := o.predict(b, i)
		residual := float64(state[4*i]) + o.loss.slope(float64(label), wx, 1)
		odds[i] = float64(b.weights[i]) * math.Sqrt(b.norms[i]+float64(o.shrink.l2)*o.loss.smooth) * math.Abs(residual)
	}
	picked, order := membudget.Make[int](len(odds)), membudget.MakeCap[int](len(odds))
	for retries := 0; len(order) < len(odds) && retries < len(odds); {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		i := pick(odds)
		if rand.Float64() > math.Pow(0.1, float64(picked[i])) {
			retries++
			continue
		}
		picked[i]++
		order = membudget.Append(order, i)
	}
	var unseen []int
	for i, n := range picked {
		if n == 0 {
			unseen = membudget.Append(unseen, i)
		}
	}
	slices.SortStableFunc(unseen, func(i, j int) int {
		switch {
		case odds[i] > odds[j]:
			return -1
		case odds[i] < odds[j]:
			return 1
		}
		return 0
	})
	return append(order, unseen[:min(len(unseen), len(odds)-len(order))]...), nil
}

// pick draws an index with probability proportional to odds.
func pick(odds []float64) int {
	sum := 0.0
	for _, v := range odds {
		sum += v
	}
	at := rand.Float64() * sum
	for i, v := range odds {
		if at -= v; at < 0 {
			return i
		}
	}
	return rand.IntN(len(odds)) // all odds are zero
}
