package savedmodel

import (
	"maps"
	"reflect"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
)

// StripDefaults removes the attributes of nodes that have the default value of m.Ops, so that older
// programs, which do not know the newest attributes, can read the graph. It replaces m.Graph and
// does not modify the old graph.
func (m *MetaGraph) StripDefaults() {
	ops := make(map[string]*opdef.Op, len(m.Ops))
	for _, op := range m.Ops {
		ops[op.Name] = op
	}
	stripped := *m.Graph
	stripped.Nodes = stripNodes(m.Graph.Nodes, ops)
	stripped.Library = make([]graph.FunctionDef, len(m.Graph.Library))
	for i, f := range m.Graph.Library {
		f.Nodes = stripNodes(f.Nodes, ops)
		stripped.Library[i] = f
	}
	m.Graph, m.DefaultsStripped = &stripped, true
}

func stripNodes(nodes []graph.NodeDef, ops map[string]*opdef.Op) []graph.NodeDef {
	out := make([]graph.NodeDef, len(nodes))
	for i, n := range nodes {
		if op := ops[n.Op]; op != nil {
			n.Attrs = maps.Clone(n.Attrs)
			for _, a := range op.Attrs {
				if a.Default != nil && reflect.DeepEqual(n.Attrs[a.Name], a.Default) {
					delete(n.Attrs, a.Name)
				}
			}
		}
		out[i] = n
	}
	return out
}
