package train

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// Group adds a node of the given name ("" for that of the scope) that runs when all of the given
// nodes have run; nil ones are left out. Nodes on one device are gathered there first, so that one
// control edge for each device crosses the network.
func Group(s *op.Scope, name string, nodes ...*graph.Node) *graph.Node {
	byDevice := map[string][]*graph.Node{}
	var devices []string
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if byDevice[n.Device] == nil {
			devices = append(devices, n.Device)
		}
		byDevice[n.Device] = append(byDevice[n.Device], n)
	}
	if name != "" {
		s = s.Named(name)
	}
	gather := func(s *op.Scope, dev string) *graph.Node {
		s = s.WithoutDevices().WithControlDependencies(byDevice[dev]...)
		if dev != "" {
			s = s.WithDevice(dev)
		}
		return op.NoOp(s)
	}
	if len(devices) == 1 {
		return gather(s, devices[0])
	}
	inner, result := s.Composite("group_deps")
	var parts []*graph.Node
	for _, dev := range devices {
		parts = append(parts, gather(inner.Named("NoOp"), dev))
	}
	return op.NoOp(result.WithControlDependencies(parts...))
}
