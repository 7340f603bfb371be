package optimize

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// maxFollowed bounds the edges of dead nodes that are followed in a graph. Branches that stay are
// followed again from each Switch that leads to them, so the time would grow with the product of
// the nodes and the edges. It is more than twice the default limit on the inputs of all nodes.
// Tests replace it.
var maxFollowed = 20_000_000

// dropBranches removes the nodes that can never run because a Switch has a constant predicate. A
// Merge with one input left becomes an Identity of that input. Errors of nodes that only the
// removed branch needs are not reported, as with TensorFlow's loop optimizer: a variable that only
// that branch reads needs no value.
func dropBranches(g *graph.Graph, _ *Options) error {
	followed := 0
	for _, n := range slices.Collect(g.Nodes()) {
		if followed > maxFollowed {
			return nil
		}
		if g.NodeByID(n.ID) != n { // removed with another branch
			continue
		}
		taken, known := constantBranch(n)
		if !known {
			continue
		}
		d := &deadBranch{g: g, from: n.Out(1 - taken), dead: map[*graph.Node]bool{}, merges: map[*graph.Node]int{}}
		d.follow()
		followed += d.edges
		if !d.removable() {
			continue
		}
		if err := d.remove(); err != nil {
			return err
		}
	}
	return nil
}

// constantBranch returns the live output of a Switch with a constant predicate. ok is false for
// other nodes.
func constantBranch(n *graph.Node) (output int, ok bool) {
	if !n.IsSwitch() || !complete(n) {
		return 0, false
	}
	pred := n.Input(1).Node
	value := pred.Attrs.Tensor("value")
	if pred.Op.Name != "Const" || value == nil || value.DType() != tensor.Bool || value.NumElements() != 1 {
		return 0, false
	}
	if tensor.Values[bool](value)[0] {
		return 1, true
	}
	return 0, true
}

// deadBranch is what depends on one output of a Switch that is always dead.
type deadBranch struct {
	g      *graph.Graph
	from   graph.Output // the output of the Switch
	dead   map[*graph.Node]bool
	order  []*graph.Node       // the dead nodes in the order of their discovery
	merges map[*graph.Node]int // number of dead data inputs of every Merge that was reached
	edges  int                 // number of edges that were followed
	kept   bool                // a node was reached that must stay
}

// follow finds the dead nodes, until it reaches one that must stay.
func (d *deadBranch) follow() {
	for _, e := range d.from.Node.OutEdges() {
		if e.SrcOut == d.from.Index {
			d.reach(e)
		}
	}
	for i := 0; i < len(d.order) && !d.kept; i++ {
		for _, e := range d.order[i].OutEdges() {
			d.reach(e)
		}
	}
}

// reach takes note of an edge that carries dead values only.
func (d *deadBranch) reach(e graph.Edge) {
	d.edges++
	n := e.Dst
	if d.dead[n] {
		return
	}
	if n.IsMerge() {
		if e.IsControl() {
			d.kept = true
			return
		}
		if d.merges[n]++; d.merges[n] < n.NumInputs() {
			return
		}
	}
	if stays(n) {
		d.kept = true
		return
	}
	d.dead[n] = true
	d.order = append(d.order, n)
}

// stays reports whether a node must stay even if it is dead: the end of an edge between tasks or
// frames, a fetch or a target.
func stays(n *graph.Node) bool {
	return len(n.OutEdges()) == 0 || n.Op.Distributed || crossesFrames(n) || n.Op.Name == "ControlTrigger"
}

func crossesFrames(n *graph.Node) bool {
	return n.IsEnter() || n.IsExit() || n.IsNextIteration() || n.Op.Name == "LoopCond"
}

// removable reports whether all dead nodes can be removed: every Merge must keep one input.
func (d *deadBranch) removable() bool {
	if d.kept {
		return false
	}
	for n, count := range d.merges {
		if !d.dead[n] && (count != n.NumInputs()-1 || n.IsLoopMerge() || n.OutTypes[0].IsRef()) {
			return false
		}
	}
	return true
}

// remove replaces the merges that keep an input and removes the dead nodes, and then what only they
// needed.
func (d *deadBranch) remove() error {
	// a graph has many branches, so all of its nodes are too many to look at for each
	for _, n := range slices.SortedFunc(maps.Keys(d.merges), func(a, b *graph.Node) int { return cmp.Compare(a.ID, b.ID) }) {
		if !d.dead[n] {
			if err := d.replace(n); err != nil {
				return err
			}
		}
	}
	unneeded := []*graph.Node{d.from.Node}
	for _, n := range d.order {
		unneeded = append(unneeded, sourcesOf(n)...)
	}
	for _, n := range d.order {
		d.g.Remove(n)
	}
	d.dropUnneeded(unneeded)
	return nil
}

// replace replaces a Merge by an Identity of the input that is not dead, and its second output, the
// index of that input, by a constant.
func (d *deadBranch) replace(n *graph.Node) error {
	i := slices.IndexFunc(n.Inputs(), func(in graph.Output) bool { return in != d.from && !d.dead[in.Node] })
	in, before, after := n.Input(i), slices.Clone(n.ControlInputs()), slices.Clone(n.OutEdges())
	d.g.Remove(n)
	value, err := d.g.Add(n.Name, "Identity", opdef.Attrs{"T": n.OutTypes[0]})
	if err != nil {
		return err
	}
	value.Device, value.Assigned = n.Device, n.Assigned
	if err := d.g.Connect(in, value, 0); err != nil {
		return err
	}
	for _, src := range before {
		d.g.ConnectControl(src, value)
	}
	var index *graph.Node
	for _, e := range after {
		src := value.Out(0)
		switch {
		case e.IsControl():
			d.g.ConnectControl(value, e.Dst)
			continue
		case e.SrcOut == 1:
			if index == nil {
				if index, err = addConstant(d.g, n, 1, tensor.Scalar(int32(i))); err != nil {
					return err
				}
				d.g.ConnectControl(value, index)
			}
			src = index.Out(0)
		}
		if err := d.g.Connect(src, e.Dst, e.DstIn); err != nil {
			return err
		}
	}
	return nil
}

// dropUnneeded removes those of some nodes that have no consumers and no effects, and then their
// inputs likewise.
func (d *deadBranch) dropUnneeded(nodes []*graph.Node) {
	for len(nodes) > 0 {
		n := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		if d.g.NodeByID(n.ID) != n || len(n.OutEdges()) > 0 || !d.effectFree(n) {
			continue
		}
		nodes = append(nodes, sourcesOf(n)...)
		d.g.Remove(n)
	}
}

// variables are the stateful operations that return a variable.
var variables = map[string]bool{"Variable": true, "VariableV2": true, "VarHandleOp": true}

// effectFree reports whether a node can be removed if its outputs are not used. Operations that
// write to a reference are not stateful.
func (d *deadBranch) effectFree(n *graph.Node) bool {
	if _, isFunction := d.g.Library.Lookup(n.Op.Name); isFunction || crossesFrames(n) || checks[n.Op.Name] {
		return false
	}
	if takesReference(n) {
		return n.IsSwitch() || n.Op.Name == "Identity"
	}
	return !n.Op.Stateful && !n.Op.Distributed || variables[n.Op.Name] || reads[n.Op.Name]
}

// sourcesOf returns the nodes of all inputs of a node.
func sourcesOf(n *graph.Node) []*graph.Node {
	nodes := slices.Clone(n.ControlInputs())
	for _, in := range n.Inputs() {
		nodes = append(nodes, in.Node)
	}
	return nodes
}
