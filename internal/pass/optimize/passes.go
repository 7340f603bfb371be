package optimize

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// Options hold what the passes need besides the graph.
type Options struct {
	// Eval computes a node whose inputs are constants. It borrows the inputs and returns one tensor
	// per output, each with a reference. A node for which it fails stays in the graph. If Eval is
	// nil, no constants are folded.
	Eval func(n *graph.Node, inputs []tensor.Tensor) ([]tensor.Tensor, error)

	// Shape returns the known part of the shape of an output. If it is nil, no shapes are folded.
	Shape func(graph.Output) tensor.PartialShape

	// Without lists the names of passes to skip.
	Without []string
}

// pass is a rewrite of a graph.
type pass struct {
	name  string
	after []string // passes that must run earlier; the table states why
	run   func(*graph.Graph, *Options) error
}

// passes are the passes in the order in which they run.
var passes = []pass{
	{name: "shapes", run: foldShapes},
	{
		name: "constants", run: foldConstants,
		// Folded shapes are constants, and computations on them can be folded.
		after: []string{"shapes"},
	},
	{
		name: "branches", run: dropBranches,
		// A folded predicate is a constant.
		after: []string{"constants"},
	},
	{
		name: "subexpressions", run: mergeSubexpressions,
		// Folding creates equal constants, which make their consumers equal.
		after: []string{"constants"},
	},
	{
		name: "unused", run: dropUnused,
		// Merging moves the consumers of equal nodes to one of them. Only then is it known whether
		// that node is used.
		after: []string{"subexpressions"},
	},
	{
		name: "replicas", run: replicateConstants,
		// Folding creates constants that may be replicated, and merging leaves fewer of them.
		after: []string{"constants", "subexpressions"},
	},
}

// Optimize runs the passes over g in place: "shapes", "constants", "branches", "subexpressions",
// "unused" and "replicas".
func Optimize(g *graph.Graph, o Options) error {
	for _, p := range passes {
		if slices.Contains(o.Without, p.name) {
			continue
		}
		if err := p.run(g, &o); err != nil {
			return err
		}
	}
	return nil
}
