package master

import (
	"slices"

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
	fed := slices.Clone(feeds)
	for _, c := range connections {
		if slices.Contains(fed, c.GetToTensor()) {
			return nil, status.InvalidArgumentf("Endpoint \"%s\" fed more than once.", c.GetToTensor())
		}
		fed = append(fed, c.GetToTensor())
	}
	g = g.Copy()
	for _, c := range connections {
		from, err := connectionSource(g, c)
		if err != nil {
			return nil, err
		}
		to, err := connectionTarget(g, c.GetToTensor())
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Clone(to.Node.OutEdges()) {
			if e.SrcOut != to.Index {
				continue
			}
			if err := g.Connect(from, e.Dst, e.DstIn); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
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
