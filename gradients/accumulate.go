package gradients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// accumulation is one run of reverse accumulation, over a graph or over the body of a loop.
type accumulation struct {
	*shared
	s    *op.Scope
	back *backLoop // nil outside of loops
}

// shared is the state that the accumulations of a graph and of the bodies of its loops share.
type shared struct {
	base    *op.Scope // of the outermost accumulation
	opts    *options
	st      *structure
	between map[*graph.Node]bool // nodes on a path from an x to a y
	pending map[unit]int         // edges to consumers between that have not been differentiated yet
	parts   map[op.Output][]Grad // contributions that have arrived
	sums    map[op.Output]Grad   // contributions added up
}

// unit is differentiated as a whole: a node or a loop.
type unit struct {
	node *graph.Node
	loop *loop
}

func accumulate(s *op.Scope, ys, xs []op.Output, opts *options) ([]Grad, error) {
	if opts.initial != nil && len(opts.initial) != len(ys) {
		return nil, status.InvalidArgumentf("gradients: %d initial gradients for %d outputs", len(opts.initial), len(ys))
	}
	for _, o := range slices.Concat(ys, xs) {
		if o.Node == nil {
			return nil, status.InvalidArgumentf("gradients: one of the outputs is the zero Output")
		}
	}
	st, err := findStructure(s.Graph())
	if err != nil {
		return nil, err
	}
	inner, _ := s.Composite("gradients")
	inner = inner.Anywhere()
	a := &accumulation{s: inner, shared: &shared{
		base: inner, opts: opts, st: st, between: findBetween(s.Graph(), ys, xs, opts.stop), pending: map[unit]int{},
		parts: map[op.Output][]Grad{}, sums: map[op.Output]Grad{},
	}}
	a.countPending()
	if err := a.run(a.begin(ys)); err != nil {
		return nil, err
	}
	out := make([]Grad, len(xs))
	for i, x := range xs {
		if out[i] = a.sum(x); out[i].IsNone() && opts.zeros && differentiable(x) && x.DType() != tensor.Variant {
			out[i] = Of(a.zeros(x))
		}
	}
	return out, nil
}

// countPending counts, for every unit, the edges to the consumers of its values in the same frame.
func (a *accumulation) countPending() {
	for n := range a.between {
		if n.IsNextIteration() || n.IsExit() || n.IsLoopMerge() || n.IsLoopSwitch() {
			continue // the boundary of a loop that is being differentiated
		}
		for _, in := range n.Inputs() {
			if a.passes(in) {
				a.pending[a.unitOf(in)]++
			}
		}
	}
}

// unitOf returns the unit that produces a value.
func (a *accumulation) unitOf(o op.Output) unit {
	if o.Node.IsExit() {
		return unit{loop: a.st.loopOf(o.Node)}
	}
	return unit{node: o.Node}
}

// findBetween returns the nodes that depend on an x and that a y depends on.
func findBetween(g *graph.Graph, ys, xs []op.Output, stop map[op.Output]bool) map[*graph.Node]bool {
	kept := findStacks(g)
	down := search{found: map[*graph.Node]bool{}}
	for _, x := range xs {
		down.push(x.Node)
	}
	for n := down.pop(); n != nil; n = down.pop() {
		for _, pop := range kept.poppedAfter(n) {
			down.push(pop)
		}
		for _, e := range n.OutEdges() {
			if !e.IsControl() && differentiable(n.Out(e.SrcOut)) && !stop[n.Out(e.SrcOut)] {
				down.push(e.Dst)
			}
		}
	}
	up := search{found: map[*graph.Node]bool{}}
	pushAll := func(outs []op.Output) {
		for _, o := range outs {
			if down.found[o.Node] && !stop[o] {
				up.push(o.Node)
			}
		}
	}
	pushAll(ys)
	for n := up.pop(); n != nil; n = up.pop() {
		pushAll(n.Inputs())
	}
	return up.found
}

// search walks over a graph and visits each node once.
type search struct {
	found map[*graph.Node]bool
	todo  []*graph.Node
}

func (s *search) push(n *graph.Node) {
	if !s.found[n] {
		s.found[n] = true
		s.todo = append(s.todo, n)
	}
}

// pop returns the next pushed node, nil if there is none.
func (s *search) pop() *graph.Node {
	if len(s.todo) == 0 {
		return nil
	}
	n := s.todo[len(s.todo)-1]
	s.todo = s.todo[:len(s.todo)-1]
	return n
}

// differentiable reports whether gradients flow through an output. Only floating-point and complex
// values have gradients, and the handles of variables and lists that hold such values.
func differentiable(o op.Output) bool {
	t := o.DType().Base()
	return t.IsFloating() || t.IsComplex() || isHandle(t)
}

// passes reports whether the gradient of an input of a node in between is needed.
func (a *accumulation) passes(in op.Output) bool { return a.between[in.Node] && !a.opts.stop[in] }

// begin sets the initial gradients of the ys and returns the nodes to differentiate first.
func (a *accumulation) begin(ys []op.Output) []unit {
	for i, y := range ys {
		var g Grad
		if a.opts.initial != nil {
			g = a.opts.initial[i]
		} else {
			g = Of(op.OnesLike(a.s.Named(fmt.Sprintf("grad_ys_%d", i)), y))
		}
		if !g.IsNone() {
			a.parts[y] = append(a.parts[y], g)
		}
	}
	return a.ready(ys)
}

// ready returns the units of ys that have no pending consumers.
func (a *accumulation) ready(ys []op.Output) []unit {
	var ready []unit
	for _, y := range ys {
		if u := a.unitOf(y); a.between[y.Node] && a.pending[u] == 0 && !slices.Contains(ready, u) {
			ready = append(ready, u)
		}
	}
	return ready
}

// run differentiates units in an order in which all gradients of a unit's values arrive before the
// unit is differentiated.
func (a *accumulation) run(ready []unit) error {
	for len(ready) > 0 {
		u := ready[0]
		ready = ready[1:]
		inputs, grads, err := a.differentiate(u)
		if err != nil {
			return err
		}
		for i, in := range inputs {
			if !a.passes(in) {
				continue
			}
			if grads != nil && !grads[i].IsNone() {
				a.parts[in] = append(a.parts[in], grads[i])
			}
			next := a.unitOf(in)
			if a.pending[next]--; a.pending[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	return nil
}

// differentiate returns the inputs of a unit and their gradients; nil for none.
func (a *accumulation) differentiate(u unit) ([]op.Output, []Grad, error) {
	if u.loop != nil {
		return a.stepLoop(u.loop)
	}
	if u.node.IsEnter() || u.node.IsLoopSwitch() {
		return nil, nil, nil // the start of the body of a loop
	}
	grads, err := a.step(u.node)
	return u.node.Inputs(), grads, err
}

// step differentiates one node. It returns nil if none of its outputs has a gradient, or if none of
// its inputs needs one.
func (a *accumulation) step(n *graph.Node) ([]Grad, error) {
	outs := make([]Grad, len(n.OutTypes))
	some := false
	for i := range outs {
		outs[i] = a.sum(n.Out(i))
		some = some || !outs[i].IsNone()
	}
	switch {
	case some && isPop(n):
		return nil, secondOrder(n)
	case !some || a.isLeaf(n):
		return nil, nil
	}
	rule, ok := rules[n.Op.Name]
	if !ok {
		return nil, status.NotFoundf("No gradient defined for operation '%s' (op type: %s)", n.Name, n.Op.Name)
	}
	if rule == nil {
		return nil, nil
	}
	s := a.s.InScope(n.Name + "_grad")
	if a.opts.colocate {
		s = s.ColocateWith(n)
	}
	grads := rule(&Call{S: s, Node: n, grads: outs, nest: a.opts.nest, source: strings.TrimSuffix(a.base.Prefix(), "/")})
	if len(grads) != n.NumInputs() {
		return nil, status.Internalf("gradients: the rule of %s gives %d gradients for %d inputs", n.Op.Name, len(grads), n.NumInputs())
	}
	if a.opts.gate {
		gate(s, grads)
	}
	return grads, nil
}

// isLeaf reports whether a node is an x: none of its inputs needs a gradient.
func (a *accumulation) isLeaf(n *graph.Node) bool {
	return !slices.ContainsFunc(n.Inputs(), a.passes)
}

// gate makes each of several gradients depend on all of them.
func gate(s *op.Scope, grads []Grad) {
	var nodes []*graph.Node
	for _, g := range grads {
		if !g.IsNone() {
			nodes = append(nodes, g.values().Node)
		}
	}
	if len(nodes) < 2 {
		return
	}
	s = s.SubScope("tuple")
	all := op.NoOp(s.Named("group_deps").WithControlDependencies(nodes...))
	for i, g := range grads {
		if !g.IsNone() {
			v := g.values()
			grads[i] = g.withValues(op.Identity(s.Named("control_dependency").ColocateWith(v.Node).WithControlDependencies(all), v))
		}
	}
}

// sum returns the sum of the contributions to an output.
func (a *accumulation) sum(o op.Output) Grad {
	if g, ok := a.sums[o]; ok {
		return g
	}
	parts := a.parts[o]
	if len(parts) == 0 {
		return Grad{}
	}
	g := parts[0]
	switch dense := !slices.ContainsFunc(parts, func(g Grad) bool { return g.Slices != nil }); {
	case dense && a.opts.pairwise:
		for _, part := range parts[1:] {
			g = Of(op.AddN(a.s, []op.Output{g.Dense, part.Dense}))
		}
	default:
		g = Sum(a.s, parts)
	}
	a.sums[o] = g
	return g
}

// zeros returns zeros of the shape of a tensor, or of the variable behind a handle.
func (a *accumulation) zeros(x op.Output) op.Output {
	if x.DType() != tensor.Resource {
		return op.ZerosLike(a.s, x)
	}
	return zerosFor(a.s, x, x.Node.Attrs.Type("dtype"))
}
