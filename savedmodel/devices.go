package savedmodel

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// ClearDevices removes the devices of all nodes, including those in functions, so that a graph that
// was built for a cluster can run in one process. It replaces m.Graph and does not modify the old
// graph.
func (m *MetaGraph) ClearDevices() {
	cleared := *m.Graph
	cleared.Nodes = withoutDevices(m.Graph.Nodes)
	cleared.Library = slices.Clone(m.Graph.Library)
	for i := range cleared.Library {
		cleared.Library[i].Nodes = withoutDevices(cleared.Library[i].Nodes)
	}
	m.Graph = &cleared
}

func withoutDevices(nodes []graph.NodeDef) []graph.NodeDef {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Device = ""
	}
	return nodes
}
