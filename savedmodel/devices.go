package savedmodel

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// ClearDevices lets every node, those of functions too, run on any device, whatever it asked for,
// so that a graph that was made for a cluster can run in one process. The graph is not modified but
// replaced.
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
