package savedmodel

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// OutputName returns the name of an output in a MetaGraph, "node:0".
func OutputName(o graph.Output) string { return o.Node.Name + ":" + strconv.Itoa(o.Index) }

// FindOutput returns the output of a graph with the given name: "node:0", or "node" for the first
// output. The error has the code NotFound if there is no such output, and InvalidArgument for a
// malformed name.
func FindOutput(g *graph.Graph, name string) (graph.Output, error) {
	node, index, given := strings.Cut(name, ":")
	n := g.Node(node)
	if n == nil {
		return graph.Output{}, status.NotFoundf("the graph has no node %s", node)
	}
	i := 0
	if given {
		var err error
		if i, err = strconv.Atoi(index); err != nil {
			return graph.Output{}, status.InvalidArgumentf("%q is not the name of an output", name)
		}
	}
	if i < 0 || i >= len(n.OutTypes) {
		return graph.Output{}, status.NotFoundf("node %s has no output %d", node, i)
	}
	return n.Out(i), nil
}

// FindNode returns the node of a graph with the given name, which may also be the name of one of
// its outputs. The error has the code NotFound.
func FindNode(g *graph.Graph, name string) (*graph.Node, error) {
	node, _, _ := strings.Cut(name, ":")
	if n := g.Node(strings.TrimPrefix(node, "^")); n != nil {
		return n, nil
	}
	return nil, status.NotFoundf("the graph has no node %s", node)
}
