package function

import "github.com/weft-ml/weft/graph"

// controlFlow are the operations that pruning keeps together with all their inputs: a loop without
// one of its nodes would never end.
var controlFlow = map[string]bool{
	"Switch": true, "RefSwitch": true, "_SwitchN": true, "Merge": true, "RefMerge": true, "Enter": true, "RefEnter": true,
	"Exit": true, "RefExit": true, "NextIteration": true, "RefNextIteration": true, "LoopCond": true, "ControlTrigger": true,
}

// prune removes the nodes of a body that no result, control output or stateful operation depends
// on.
func prune(body *graph.Body) {
	g := body.Graph
	keep := make([]bool, g.NumIDs())
	var todo []*graph.Node
	need := func(n *graph.Node) {
		if n != nil && !keep[n.ID] {
			keep[n.ID] = true
			todo = append(todo, n)
		}
	}
	for _, n := range body.Rets {
		need(n)
	}
	for _, n := range body.Controls {
		need(n)
	}
	for n := range g.Nodes() {
		if controlFlow[n.Op.Name] || n.Op.Stateful && n.Op.Name != "_Arg" {
			need(n)
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, in := range n.Inputs() {
			need(in.Node)
		}
		for _, in := range n.ControlInputs() {
			need(in)
		}
	}
	for n := range g.Nodes() {
		if !keep[n.ID] {
			g.Remove(n)
		}
	}
}
