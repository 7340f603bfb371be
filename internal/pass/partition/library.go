package partition

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// pruneLibrary removes the functions that the nodes of a part cannot call, directly or indirectly.
func pruneLibrary(part *graph.Graph) {
	if part.Library.Len() == 0 {
		return
	}
	var called []string
	for n := range part.Nodes() {
		called = append(called, n.Op.Name)
		called = slices.AppendSeq(called, n.Attrs.Functions())
	}
	part.Library = part.Library.Used(called)
}
