package lower

import (
	"strings"

	"github.com/weft-ml/weft/graph"
)

// markUncertain marks the calls downstream of a Switch or Enter. at maps a node of g to its copy.
func (l *lowerer) markUncertain(g *graph.Graph, at func(*graph.Node) *graph.Node) {
	if l.err != nil {
		return
	}
	for id, uncertain := range downstream(g) {
		if !uncertain {
			continue
		}
		if c := at(g.NodeByID(id)); c != nil && isCall(l, c) {
			l.uncertain[c] = true
		}
	}
}

// downstream reports for each node, by ID, whether it is a Switch or Enter or is reachable from
// one. Such nodes may be dead or in a frame.
func downstream(g *graph.Graph) []bool {
	seen := make([]bool, g.NumIDs())
	var todo []*graph.Node
	for n := range g.Nodes() {
		switch n.Op.Name {
		case "Switch", "RefSwitch", "_SwitchN", "Enter", "RefEnter":
			seen[n.ID] = true
			todo = append(todo, n)
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range n.OutEdges() {
			if !seen[e.Dst.ID] {
				seen[e.Dst.ID] = true
				todo = append(todo, e.Dst)
			}
		}
	}
	return seen
}

// isCall reports whether a node may be replaced by nodes including some without inputs.
func isCall(l *lowerer, n *graph.Node) bool {
	if _, ok := l.g.Library.Lookup(n.Op.Name); ok {
		return true
	}
	return strings.HasSuffix(n.Op.Name, "PartitionedCall") || n.Op.Name == "SymbolicGradient"
}
