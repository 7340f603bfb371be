package partition

import (
	"slices"

	"github.com/weft-ml/weft/graph"
)

// pruneLibrary removes the functions that the nodes of a part cannot call, directly or indirectly.
func pruneLibrary(part *graph.Graph) error {
	if len(part.Library.Names()) == 0 {
		return nil
	}
	var called []string
	for n := range part.Nodes() {
		called = append(called, n.Op.Name)
		called = slices.AppendSeq(called, n.Attrs.Functions())
	}
	defs, gradient := part.Library.Part(called)
	part.Library = graph.New(part.Ops()).Library
	return part.Library.Add(defs, gradient, part.Ops())
}
