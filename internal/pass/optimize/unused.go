package optimize

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// dropUnused makes a NoOp of every node whose outputs nobody takes and that has no other effect
// than to compute them, but for which others wait: automatic differentiation ties the gradients of
// an operation together, wanted or not. What such a node would have reported as an error is not
// reported, as with TensorFlow's dependency optimizer.
func dropUnused(g *graph.Graph, _ *Options) error {
	order, err := g.InOrder()
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(order) { // what only such nodes take is not used either
		if !unused(n) {
			continue
		}
		if err := becomeNoOp(g, n); err != nil {
			return err
		}
	}
	return nil
}

// reads of variables have a state, but change none.
var reads = map[string]bool{"ReadVariableOp": true, "_ReadVariablesOp": true, "ResourceGather": true, "ResourceGatherNd": true}

// checks are there for the errors that they report.
var checks = map[string]bool{"CheckNumerics": true, "CheckNumericsV2": true}

// unused reports whether a node can become a NoOp. A node without out-edges is a target. An
// Identity of a reference reports that a variable has no value.
func unused(n *graph.Node) bool {
	if len(n.OutEdges()) == 0 || !foldable(n) && !reads[n.Op.Name] || checks[n.Op.Name] || !complete(n) {
		return false
	}
	if n.Op.Name == "Identity" && takesReference(n) {
		return false
	}
	for _, e := range n.OutEdges() {
		if !e.IsControl() {
			return false
		}
	}
	// A control edge does not tell which output of a Switch is dead, nor the iterations of a frame
	// apart as data does.
	return !slices.ContainsFunc(n.Inputs(), func(in graph.Output) bool { return steersFlow[in.Node.Op.Name] })
}

var steersFlow = map[string]bool{
	"Switch": true, "RefSwitch": true, "_SwitchN": true, "Merge": true, "RefMerge": true, "Enter": true, "RefEnter": true,
	"Exit": true, "RefExit": true, "NextIteration": true, "RefNextIteration": true, "LoopCond": true,
}

// becomeNoOp puts a NoOp of the same name, that waits for what n takes, into the place of n.
func becomeNoOp(g *graph.Graph, n *graph.Node) error {
	before, after := slices.Clone(n.ControlInputs()), slices.Clone(n.OutEdges())
	for _, in := range n.Inputs() {
		before = append(before, in.Node)
	}
	g.Remove(n)
	nop, err := g.Add(n.Name, "NoOp", nil)
	if err != nil {
		return err
	}
	nop.Device, nop.Assigned = n.Device, n.Assigned
	for _, src := range before {
		g.ConnectControl(src, nop)
	}
	for _, e := range after {
		g.ConnectControl(nop, e.Dst)
	}
	return nil
}
