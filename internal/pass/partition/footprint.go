package partition

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// nodeFootprint is the memory of a node or function in a graph and its partitions in bytes.
const nodeFootprint = 2800

// FootprintOf estimates the memory in bytes of a copy of a graph with a number of nodes and
// functions.
func FootprintOf(nodes int) int64 { return int64(nodes) * nodeFootprint }

// Footprint estimates the memory in bytes that a copy of a graph takes, with its functions.
func Footprint(g *graph.Graph) int64 {
	nodes := g.NumNodes()
	for _, name := range g.Library.Names() {
		nodes++
		if f, ok := g.Library.Lookup(name); ok {
			nodes += len(f.Def.Nodes)
		}
	}
	return FootprintOf(nodes)
}

// takeNode asks for the memory of a node that a split adds for a node of the graph. Each such node
// has the name of that one, which may be long, in its own name and, if it transfers a tensor, in an
// attribute.
func takeNode(name string) error {
	if !membudget.Take(nodeFootprint + 2*int64(len(name))) {
		return status.ResourceExhaustedf("There is not enough memory to split the graph (--memory-limit).")
	}
	return nil
}
