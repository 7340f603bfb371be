package master

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/graph"
)

// checkOps returns PermissionDenied if the pruned graph of a step, or a function that it can call,
// has an operation that the task does not run. Nodes that no step needs may have any operation. The
// workers check what they get, too.
func (m *Master) checkOps(g *graph.Graph) error {
	if m.Policy == nil {
		return nil
	}
	called := map[string]bool{}
	for n := range g.Nodes() {
		if err := m.Policy.Check(n.Name, n.Op); err != nil {
			return err
		}
		called[n.Op.Name] = true
		for f := range n.Attrs.Functions() {
			called[f] = true
		}
	}
	functions, _ := g.Library.Part(slices.Sorted(maps.Keys(called)))
	for i := range functions {
		for j := range functions[i].Nodes {
			n := &functions[i].Nodes[j]
			if op, ok := m.Kernels.LookupOp(n.Op); ok {
				if err := m.Policy.Check(n.Name, op); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
