package gradients

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// maxNesting bounds how deep the calls of functions that are differentiated are nested. Each
// level takes stack and keeps its body in memory. The executor allows calls twice as deep.
const maxNesting = 1000

// maxNodes bounds the nodes of the bodies and of the gradient functions of one computation. It is
// the default of the server's limit on the nodes of a graph. A function can call others with
// attributes that grow, so a small library can have endlessly many bodies. Tests replace it.
var maxNodes = 1_000_000

// nesting is the place of a computation of gradients among the functions that are being
// differentiated. The outermost computation has one without a function.
type nesting struct {
	*differentiated
	outer    *nesting // nil for the outermost
	function string   // name
	depth    int
}

// differentiated is the state that a computation shares with those of the functions it calls.
type differentiated struct {
	made       map[string]*op.Function // functions that compute gradients, by backwardKey
	repeatable map[string]bool         // names of the functions that were checked
	nodes      int                     // nodes that were built
}

func newNesting() *nesting {
	return &nesting{differentiated: &differentiated{made: map[string]*op.Function{}, repeatable: map[string]bool{}}}
}

// within makes a computation part of another one.
func within(n *nesting) Option { return func(o *options) { o.nest = n } }

// enter returns the nesting for the body of a function. A function that calls itself has no
// gradient: it would be nested in itself without end.
func (n *nesting) enter(f opdef.Func) (*nesting, error) {
	for at := n; at.outer != nil; at = at.outer {
		if at.function == f.Name {
			return nil, status.InvalidArgumentf("No gradient is defined for function '%s', which calls itself", f.Name)
		}
	}
	if n.depth >= maxNesting {
		return nil, status.ResourceExhaustedf("Functions to differentiate are nested more than %d deep, in function '%s'",
			maxNesting, f.Name)
	}
	return &nesting{differentiated: n.differentiated, outer: n, function: f.Name, depth: n.depth + 1}, nil
}

// count adds the nodes of a graph that was built.
func (n *nesting) count(g *graph.Graph) error {
	if n.nodes += g.NumNodes(); n.nodes > maxNodes {
		return status.ResourceExhaustedf("The gradients of functions take more than %d nodes, in function '%s'", maxNodes, n.function)
	}
	return nil
}
