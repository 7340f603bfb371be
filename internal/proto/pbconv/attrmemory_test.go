package pbconv

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Nodes may share the text of an attribute, which their messages copy.
func TestSharedAttributesAskForMemory(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, v := range map[string]any{"string": long, "list": []string{long}} {
		def := &graph.Def{Nodes: slices.Repeat([]graph.NodeDef{{Name: "n", Op: "NoOp", Attrs: opdef.Attrs{"s": v}}}, 1000)}
		membudget.SetLimit(256 << 20)
		_, err := GraphToProto(def)
		membudget.SetLimit(0)
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("%s: %v", name, err)
		}
	}
}
