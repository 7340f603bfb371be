package op

import "github.com/weft-ml/weft/graph"

// Group adds a NoOp node that is executed after all of the given nodes. Nil nodes are ignored. The
// name of the node is that of the scope ([Scope.Named]). If the nodes are on several devices, an
// additional node on each device collects its control dependencies, so that only one control edge
// per device crosses the network.
func Group(s *Scope, nodes ...*graph.Node) *graph.Node {
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
	gather := func(s *Scope, dev string) *graph.Node {
		s = s.WithoutDevices().WithControlDependencies(byDevice[dev]...)
		if dev != "" {
			s = s.WithDevice(dev)
		}
		return NoOp(s)
	}
	if len(devices) == 1 {
		return gather(s, devices[0])
	}
	inner, result := s.Composite("group_deps")
	var parts []*graph.Node
	for _, dev := range devices {
		parts = append(parts, gather(inner.Named("NoOp"), dev))
	}
	return NoOp(result.WithControlDependencies(parts...))
}
