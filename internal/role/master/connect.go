package master

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// connect returns g, or a copy in which the tensor connections of a callable replace outputs by
// others. feeds are those of the callable: an output may be fed or replaced, and only once.
func connect(g *graph.Graph, connections []*pb.TensorConnection, feeds []string) (*graph.Graph, error) {
	if len(connections) == 0 {
		return g, nil
	}
	fed := make(map[string]bool, len(feeds)+len(connections))
	for _, name := range feeds {
		fed[name] = true
	}
	for _, c := range connections {
		if fed[c.GetToTensor()] {
			return nil, status.InvalidArgumentf("Endpoint \"%s\" fed more than once.", c.GetToTensor())
		}
		fed[c.GetToTensor()] = true
	}
	g = g.Copy()
	consumers := outputEdges{}
	for _, c := range connections {
		from, err := connectionSource(g, c)
		if err != nil {
			return nil, err
		}
		to, err := connectionTarget(g, c.GetToTensor())
		if err != nil {
			return nil, err
		}
		for _, e := range consumers.of(to) {
			if err := g.Connect(from, e.Dst, e.DstIn); err != nil {
				return nil, err
			}
			consumers.add(from, e)
		}
	}
	return g, nil
}

// outputEdges holds the edges to the consumers of outputs, of nodes that connections name. A node
// may have a million outputs, and connections may replace each of them.
type outputEdges map[*graph.Node]map[int][]graph.Edge

// of returns the edges of an output, which are to be moved.
func (o outputEdges) of(out graph.Output) []graph.Edge {
	byIndex := o[out.Node]
	if byIndex == nil {
		byIndex = map[int][]graph.Edge{}
		for _, e := range out.Node.OutEdges() {
			byIndex[e.SrcOut] = append(byIndex[e.SrcOut], e)
		}
		o[out.Node] = byIndex
	}
	edges := byIndex[out.Index]
	delete(byIndex, out.Index)
	return edges
}

// add records that an edge was moved to another output.
func (o outputEdges) add(to graph.Output, e graph.Edge) {
	if byIndex := o[to.Node]; byIndex != nil {
		byIndex[to.Index] = append(byIndex[to.Index], graph.Edge{Src: to.Node, SrcOut: to.Index, Dst: e.Dst, DstIn: e.DstIn})
	}
}

func connectionSource(g *graph.Graph, c *pb.TensorConnection) (graph.Output, error) {
	node, index := graph.ParseInput(c.GetFromTensor())
	n := g.Node(node)
	switch {
	case n == nil || index == graph.Control:
		return graph.Output{}, status.InvalidArgumentf("Requested tensor connection from unknown node: \"%s\".", c.GetToTensor())
	case index >= len(n.OutTypes):
		return graph.Output{}, status.InvalidArgumentf("Requested tensor connection from unknown edge: \"%s\" (actual number "+
			"of outputs = %d).", c.GetToTensor(), len(n.OutTypes))
	}
	return n.Out(index), nil
}

func connectionTarget(g *graph.Graph, name string) (graph.Output, error) {
	node, index := graph.ParseInput(name)
	n := g.Node(node)
	switch {
	case n == nil || index == graph.Control:
		return graph.Output{}, status.NotFoundf("FeedInputs: unable to find feed output %s", name)
	case index >= len(n.OutTypes):
		return graph.Output{}, status.InvalidArgumentf("FeedInputs: %s should have output index < %d", name, len(n.OutTypes))
	}
	return n.Out(index), nil
}
