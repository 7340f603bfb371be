package optimize

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// Options are what the passes need beside the graph.
type Options struct {
	// Eval computes a node whose inputs are constants. It borrows the inputs and returns one tensor
	// per output, with a reference each. A node for which it fails stays in the graph. Without Eval
	// no constants are folded.
	Eval func(n *graph.Node, inputs []tensor.Tensor) ([]tensor.Tensor, error)

	// Shape returns what is known of the shape of an output. Without it no shapes are folded.
	Shape func(graph.Output) tensor.PartialShape

	// Without names passes that are not to be run.
	Without []string
}

// A pass rewrites a graph.
type pass struct {
	name  string
	after []string // passes whose results it builds on
	run   func(*graph.Graph, *Options) error
}

// passes are the passes in the order in which they run.
var passes = []pass{
	{name: "shapes", run: foldShapes},
	{name: "constants", after: []string{"shapes"}, run: foldConstants},
	{name: "subexpressions", after: []string{"constants"}, run: mergeSubexpressions},
	{name: "unused", after: []string{"subexpressions"}, run: dropUnused},
	{name: "replicas", after: []string{"constants", "subexpressions"}, run: replicateConstants},
}

// Optimize runs the passes over g in place: "shapes", "constants", "subexpressions", "unused" and
// "replicas".
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
