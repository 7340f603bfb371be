package savedmodel

import (
	"testing"

	"github.com/weft-ml/weft/graph"
)

func TestClearDevices(t *testing.T) {
	before := &graph.Def{
		Nodes:   []graph.NodeDef{{Name: "a", Op: "NoOp", Device: "/job:ps/task:0"}},
		Library: []graph.FunctionDef{{Nodes: []graph.NodeDef{{Name: "b", Op: "NoOp", Device: "/device:GPU:0"}}}},
	}
	m := &MetaGraph{Graph: before}
	m.ClearDevices()
	for _, n := range []graph.NodeDef{m.Graph.Nodes[0], m.Graph.Library[0].Nodes[0]} {
		if n.Device != "" || n.Op != "NoOp" {
			t.Errorf("%+v: the node has a device or was changed", n)
		}
	}
	if before.Nodes[0].Device != "/job:ps/task:0" || before.Library[0].Nodes[0].Device != "/device:GPU:0" {
		t.Errorf("the old graph was modified: %+v", before)
	}
}
