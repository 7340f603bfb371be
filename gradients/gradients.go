// Package gradients differentiates graphs: it adds to a graph the nodes that compute the derivatives of some of its
// outputs with respect to others, by reverse accumulation.
//
//	grads, err := gradients.Add(s, []op.Output{loss}, []op.Output{w, b})
//
// Every differentiable operation has a [Rule], registered by name in the file of its family, that adds the nodes for one
// step of the chain rule. A gradient is dense, sparse ([IndexedSlices], for gathers from large variables) or none.
package gradients

import (
	"fmt"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// Grad is the gradient with respect to one output. The zero Grad says that there is none: the output does not influence
// what is differentiated.
type Grad struct {
	Dense  op.Output
	Slices *IndexedSlices
}

// IndexedSlices is a gradient that is zero outside of some rows: row Indices[i] of a tensor of shape Shape is Values[i],
// and rows that are named more than once add up.
type IndexedSlices struct {
	Values  op.Output // [n, …] elements
	Indices op.Output // [n] int32 or int64
	Shape   op.Output // vector, the shape of the dense gradient; may be the zero Output if nobody needs it
}

// IsNone reports whether there is no gradient.
func (g Grad) IsNone() bool { return g.Dense.Node == nil && g.Slices == nil }

// Of returns the dense gradient o.
func Of(o op.Output) Grad { return Grad{Dense: o} }

// List returns dense gradients; the zero Output stands for none.
func List(outs ...op.Output) []Grad {
	grads := make([]Grad, len(outs))
	for i, o := range outs {
		grads[i] = Of(o)
	}
	return grads
}

// Options change how [Add] works. The zero value is the default.
type Options struct {
	// Initial are the gradients of ys that accumulation starts from, one for each; by default all ones.
	Initial []Grad
	// Stop are outputs that gradients do not pass through: they are taken as constants.
	Stop []op.Output
	// Colocate places the nodes of each step on the device of the operation that they differentiate.
	Colocate bool
}

// Add adds nodes that compute the sum over ys of the derivative of y with respect to each of xs, and returns one gradient
// per x. An x that no y depends on has none. Mistakes are recorded in the scope too.
func Add(s *op.Scope, ys, xs []op.Output, opts ...Options) ([]Grad, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Initial != nil && len(o.Initial) != len(ys) {
		return nil, fmt.Errorf("gradients: %d initial gradients for %d outputs", len(o.Initial), len(ys))
	}
	a := newAccumulation(s.SubScope("gradients"), ys, xs, o)
	grads, err := a.run()
	if err == nil {
		err = s.Err()
	}
	if err != nil {
		return nil, err
	}
	return grads, nil
}

// accumulation is one run of reverse accumulation.
type accumulation struct {
	s       *op.Scope
	ys, xs  []op.Output
	opts    Options
	stop    map[op.Output]bool
	between map[*graph.Node]bool // nodes on a path from an x to a y
	pending map[*graph.Node]int  // consumers between that have not been differentiated yet
	parts   map[op.Output][]Grad // contributions that have arrived
	sums    map[op.Output]Grad   // contributions added up
}

func newAccumulation(s *op.Scope, ys, xs []op.Output, opts Options) *accumulation {
	a := &accumulation{
		s: s, ys: ys, xs: xs, opts: opts, stop: map[op.Output]bool{}, parts: map[op.Output][]Grad{}, sums: map[op.Output]Grad{},
		pending: map[*graph.Node]int{},
	}
	for _, o := range opts.Stop {
		a.stop[o] = true
	}
	a.findBetween()
	for n := range a.between {
		for _, in := range n.Inputs() {
			if a.between[in.Node] && !a.stop[in] {
				a.pending[in.Node]++
			}
		}
	}
	return a
}

// findBetween marks the nodes that both depend on an x and are needed for a y.
func (a *accumulation) findBetween() {
	fromX := map[*graph.Node]bool{}
	var down func(*graph.Node)
	stack := []*graph.Node{}
	down = func(n *graph.Node) {
		if n != nil && !fromX[n] {
			fromX[n] = true
			stack = append(stack, n)
		}
	}
	for _, x := range a.xs {
		down(x.Node)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range n.OutEdges() {
			if !e.IsControl() && differentiable(n.Out(e.SrcOut)) && !a.stop[n.Out(e.SrcOut)] {
				down(e.Dst)
			}
		}
	}
	a.between = map[*graph.Node]bool{}
	up := func(n *graph.Node) {
		if n != nil && fromX[n] && !a.between[n] {
			a.between[n] = true
			stack = append(stack, n)
		}
	}
	for _, y := range a.ys {
		up(y.Node)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, in := range n.Inputs() {
			up(in.Node)
		}
	}
}

// differentiable reports whether gradients flow through an output: only floating-point and complex values vary, and
// handles of variables stand for such values.
func differentiable(o op.Output) bool {
	t := o.DType().Base()
	return t.IsFloating() || t.IsComplex() || isHandle(t)
}

func (a *accumulation) run() ([]Grad, error) {
	for i, y := range a.ys {
		g := Grad{}
		if a.opts.Initial != nil {
			g = a.opts.Initial[i]
		} else if y.Node != nil {
			g = Of(op.OnesLike(a.s.Named("grad_ys"), y))
		}
		a.parts[y] = append(a.parts[y], g)
	}
	var ready []*graph.Node
	seen := map[*graph.Node]bool{}
	for _, y := range a.ys {
		if a.between[y.Node] && a.pending[y.Node] == 0 && !seen[y.Node] {
			seen[y.Node] = true
			ready = append(ready, y.Node)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		grads, err := a.step(n)
		if err != nil {
			return nil, err
		}
		for i, in := range n.Inputs() {
			if !a.between[in.Node] || a.stop[in] {
				continue
			}
			if grads != nil && !grads[i].IsNone() {
				a.parts[in] = append(a.parts[in], grads[i])
			}
			if a.pending[in.Node]--; a.pending[in.Node] == 0 {
				ready = append(ready, in.Node)
			}
		}
	}
	out := make([]Grad, len(a.xs))
	for i, x := range a.xs {
		out[i] = a.sum(x)
	}
	return out, nil
}

// step differentiates one node whose output gradients have all arrived; nil if none has a gradient.
func (a *accumulation) step(n *graph.Node) ([]Grad, error) {
	outs := make([]Grad, len(n.OutTypes))
	some := false
	for i := range outs {
		outs[i] = a.sum(n.Out(i))
		some = some || !outs[i].IsNone()
	}
	if !some || a.isLeaf(n) {
		return nil, nil
	}
	rule, ok := rules[n.Op.Name]
	if !ok {
		return nil, fmt.Errorf("No gradient defined for operation '%s' (op type: %s)", n.Name, n.Op.Name) //nolint:staticcheck,revive // TensorFlow's text
	}
	if rule == nil {
		return nil, nil
	}
	s := a.s.InScope(n.Name + "_grad")
	if a.opts.Colocate {
		s = s.ColocateWith(n)
	}
	grads := rule(&Call{S: s, Node: n, grads: outs})
	if len(grads) != n.NumInputs() {
		return nil, fmt.Errorf("gradients: the rule of %s gives %d gradients for %d inputs", n.Op.Name, len(grads), n.NumInputs())
	}
	return grads, nil
}

// isLeaf reports whether a node is an x all of whose inputs lie outside of what is differentiated.
func (a *accumulation) isLeaf(n *graph.Node) bool {
	for _, in := range n.Inputs() {
		if a.between[in.Node] && !a.stop[in] {
			return false
		}
	}
	return true
}

// sum adds up the contributions to an output.
func (a *accumulation) sum(o op.Output) Grad {
	if g, ok := a.sums[o]; ok {
		return g
	}
	parts := a.parts[o]
	var g Grad
	switch {
	case len(parts) == 0:
		return Grad{}
	case len(parts) == 1:
		g = parts[0]
	default:
		g = Sum(a.s, parts)
	}
	a.sums[o] = g
	return g
}

// Sum adds gradients up. The sum is sparse if all are.
func Sum(s *op.Scope, grads []Grad) Grad {
	sparse := true
	for _, g := range grads {
		sparse = sparse && g.Slices != nil
	}
	if !sparse {
		dense := make([]op.Output, len(grads))
		for i, g := range grads {
			dense[i] = Densify(s, g)
		}
		return Of(op.AddN(s, dense))
	}
	values, indices := make([]op.Output, len(grads)), make([]op.Output, len(grads))
	for i, g := range grads {
		values[i], indices[i] = g.Slices.Values, g.Slices.Indices
	}
	axis := op.Const(s, int32(0))
	return Grad{Slices: &IndexedSlices{
		Values: op.ConcatV2(s, values, axis), Indices: op.ConcatV2(s, sameIndexType(s, indices), axis), Shape: grads[0].Slices.Shape,
	}}
}

// Densify returns the gradient as a tensor.
func Densify(s *op.Scope, g Grad) op.Output {
	if g.Slices == nil {
		return g.Dense
	}
	rows := op.StridedSlice(s, g.Slices.Shape, op.Const(s, []int32{0}), op.Const(s, []int32{1}), op.Const(s, []int32{1}),
		op.StridedSliceShrinkAxisMask(1))
	return op.UnsortedSegmentSum(s, g.Slices.Values, g.Slices.Indices, rows)
}
