package optimize

import (
	"slices"
	"strconv"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
)

// maxReplicated is the maximum number of elements of a replicated constant. A copy on every device
// is cheaper than a transfer in every step.
const maxReplicated = 16

// replicateConstants adds a copy of a small constant on every device that consumes it, if there are
// several. Constants with control edges are not replicated, because the copies would need control
// edges across devices.
func replicateConstants(g *graph.Graph, _ *Options) error {
	for n := range g.Nodes() {
		if !replicable(n) {
			continue
		}
		replicas := map[string]*graph.Node{n.Assigned: n}
		for _, e := range slices.Clone(n.OutEdges()) {
			r := replicas[e.Dst.Assigned]
			if r == nil {
				var err error
				if r, err = replicate(g, n, e.Dst.Assigned, len(replicas)-1); err != nil {
					return err
				}
				replicas[e.Dst.Assigned] = r
			}
			if err := g.Connect(r.Out(0), e.Dst, e.DstIn); err != nil {
				return err
			}
		}
		if len(n.OutEdges()) == 0 {
			g.Remove(n)
		}
	}
	return nil
}

func replicate(g *graph.Graph, n *graph.Node, assigned string, i int) (*graph.Node, error) {
	r, err := g.Add(unusedName(g, n.Name+"/replicate/_"+strconv.Itoa(i)), n.Op.Name, n.Attrs)
	if err == nil {
		r.Assigned = assigned
	}
	return r, err
}

// replicable reports whether a node is a small constant whose consumers are on several devices, all
// of them CPUs.
func replicable(n *graph.Node) bool {
	value := n.Attrs.Tensor("value")
	if n.Op.Name != "Const" || value == nil || value.NumElements() > maxReplicated || len(n.ControlInputs()) > 0 || !onCPU(n) {
		return false
	}
	several := false
	for _, e := range n.OutEdges() {
		if e.IsControl() || !onCPU(e.Dst) {
			return false
		}
		several = several || e.Dst.Assigned != n.OutEdges()[0].Dst.Assigned
	}
	return several
}

func onCPU(n *graph.Node) bool {
	spec, err := device.Parse(n.Assigned)
	return err == nil && spec.Type == "CPU"
}
