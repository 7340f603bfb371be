package optimize

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// dropUnused replaces a node by a NoOp if its outputs are not consumed, it has no effects, and it
// only has control successors. Automatic differentiation creates such nodes: it groups all
// gradients of an operation, including unused ones. Errors of the replaced nodes are not reported,
// as with TensorFlow's dependency optimizer.
func dropUnused(g *graph.Graph, _ *Options) error {
	order, err := g.InOrder()
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(order) { // backwards: inputs of replaced nodes become unused
		if !unused(n) {
			continue
		}
		if err := becomeNoOp(g, n); err != nil {
			return err
		}
	}
	return nil
}

// reads are the stateful operations that only read a variable.
var reads = map[string]bool{"ReadVariableOp": true, "_ReadVariablesOp": true, "ResourceGather": true, "ResourceGatherNd": true}

// checks are operations that exist for the errors that they report.
var checks = map[string]bool{"CheckNumerics": true, "CheckNumericsV2": true}

// unused reports whether a node can be replaced by a NoOp. A node without out-edges is a target. An
// Identity of a reference reports an uninitialized variable.
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
	// Unlike a data edge, a control edge does not distinguish the outputs of a Switch, nor the
	// iterations of a frame.
	return !slices.ContainsFunc(n.Inputs(), func(in graph.Output) bool { return steersFlow[in.Node.Op.Name] })
}

var steersFlow = map[string]bool{
	"Switch": true, "RefSwitch": true, "_SwitchN": true, "Merge": true, "RefMerge": true, "Enter": true, "RefEnter": true,
	"Exit": true, "RefExit": true, "NextIteration": true, "RefNextIteration": true, "LoopCond": true,
}

// becomeNoOp replaces n by a NoOp of the same name that waits for the inputs of n.
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
