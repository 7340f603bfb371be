package executor

import "github.com/weft-ml/weft/graph"

// runOrder returns the nodes of a graph approximately in the order in which one goroutine executes
// them. The state of the nodes is laid out in this order, so a run accesses memory mostly in
// sequence. Client programs often create the nodes of several chains alternately. In the order of
// the graph, 50 chains took 340 ns a node, and in run order they take 165
// (docs/notes/2026-11-executor.md).
func runOrder(g *graph.Graph) []*graph.Node {
	var ready []*graph.Node // a stack
	pending := make([]int, g.NumIDs())
	for n := range g.Nodes() {
		pending[n.ID] = n.NumInputs()
		if kinds[n.Op.Name] == merge {
			pending[n.ID] = 1 // the other inputs may come from a NextIteration
		}
		pending[n.ID] += len(n.ControlInputs())
		if pending[n.ID] == 0 {
			ready = append(ready, n)
		}
	}
	for i, j := 0, len(ready)-1; i < j; i, j = i+1, j-1 {
		ready[i], ready[j] = ready[j], ready[i]
	}
	order := make([]*graph.Node, 0, g.NumNodes())
	placed := make([]bool, g.NumIDs())
	for len(ready) > 0 {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		order = append(order, n)
		placed[n.ID] = true
		for _, e := range n.OutEdges() {
			if pending[e.Dst.ID]--; pending[e.Dst.ID] == 0 {
				ready = append(ready, e.Dst)
			}
		}
	}
	for n := range g.Nodes() {
		if !placed[n.ID] {
			order = append(order, n)
		}
	}
	return order
}
