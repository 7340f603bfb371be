package partition_test

import (
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/pass/partition"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// TestFootprint has a graph whose functions are larger than itself.
func TestFootprint(t *testing.T) {
	g := graph.New(kernel.Default)
	empty := partition.Footprint(g)
	def := graph.FunctionDef{Signature: opdef.Op{Name: "f"}, Nodes: make([]graph.NodeDef, 9)}
	if err := g.Library.Add([]graph.FunctionDef{def}, nil, kernel.Default); err != nil {
		t.Fatal(err)
	}
	if got := partition.Footprint(g); empty != 0 || got != 10*2800 {
		t.Errorf("got %d and %d bytes, want 0 and 28000", empty, got)
	}
}
