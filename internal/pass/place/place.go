// Package place decides on which device each node of a graph runs.
//
// Contract: [Place] assigns every node of the graph to a device that has a kernel for it and
// satisfies its request, or returns an error that names the node. It only sets assignments; it adds
// and removes no nodes.
//
// Nodes are joined to groups that must share a device: by reference and resource edges, and by
// colocation requests (the attribute _class). A group has the merged requests of its members and
// the device types that have kernels for all of them. Each node gets the most preferred device that
// its group can have, or the device of its input or consumer if that saves a transfer. Rules, order
// and error texts are those of TensorFlow's placer, so both place a graph in the same way.
package place

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Options hold what placement needs besides the graph.
type Options struct {
	Devices []string // full names of the devices that nodes can be placed on
	// full name of the device of the session; nodes without a request stay on its task
	Client  string
	Kernels Kernels
	// use another device of the same task if none has the requested type or number
	Soft bool

	// Log is called with a line "name: (Op): device" for each node that is placed, and for each
	// request that is ignored. It may be nil.
	Log func(line string)
	// Warn is called when resources are placed on a device other than the requested one. It may be
	// nil.
	Warn func(line string)
}

// Kernels provides operations and their kernels. *kernel.Registry implements it.
type Kernels interface {
	opdef.Lookup
	Kernels(op string) []kernel.Impl
}

// Place sets the device of every unassigned node. Assigned nodes keep their device, and the members
// of their groups use it too. If Place fails, some nodes may have been assigned.
func Place(g *graph.Graph, o Options) error {
	if len(o.Devices) == 0 {
		return status.FailedPreconditionf("No devices are registered")
	}
	devices, err := newDeviceSet(o.Devices, o.Client)
	if err != nil {
		return err
	}
	p := newPlacer(g, &o, devices, &bodies{seen: map[string]*bodyGroups{}, first: map[string]bool{}})
	if err := p.buildGroups(); err != nil {
		return err
	}
	return p.assignAll()
}

// KeepState prepares the placement of an extended graph. Stateful nodes get the assignment of the
// node of the same name in the graph before, and all other assignments are removed, as in
// TensorFlow.
func KeepState(g, before *graph.Graph) {
	for n := range g.Nodes() {
		n.Assigned = ""
		if old := before.Node(n.Name); old != nil && n.Op.Stateful {
			n.Assigned = old.Assigned
		}
	}
}

// placer places the nodes of one graph, or finds the groups in the body of a function.
type placer struct {
	g       *graph.Graph
	o       *Options
	devices *deviceSet
	groups  []group // by node ID; only those of roots are valid
	// indexes of the devices that nodes are assigned to, in order of first use
	used   map[string]int
	ends   ends
	bodies *bodies

	descriptions int // number of groups that were described for errors and warnings
}

func newPlacer(g *graph.Graph, o *Options, devices *deviceSet, b *bodies) *placer {
	return &placer{
		g: g, o: o, devices: devices, groups: make([]group, g.NumIDs()), used: map[string]int{}, bodies: b,
		ends: ends{in: map[*graph.Node][]member{}, out: map[graph.Edge]member{}},
	}
}

// assignAll assigns every node to a device of its group. Nodes without inputs come last, because
// they can follow their consumers.
func (p *placer) assignAll() error {
	var generators []*graph.Node
	if err := p.checkEnds(); err != nil {
		return err
	}
	for n := range p.g.Nodes() {
		switch {
		case n.Assigned != "":
			if err := p.limitToAssigned(n); err != nil {
				return err
			}
			p.logAssigned(n)
		case isGenerator(n):
			generators = append(generators, n)
		default:
			if err := p.assign(n, inputDevice(n)); err != nil {
				return err
			}
		}
	}
	for _, n := range generators {
		if err := p.assign(n, consumersDevice(n)); err != nil {
			return err
		}
	}
	return nil
}

// assign places a node on the preferred device if that is a candidate, or else on the first
// candidate.
func (p *placer) assign(n *graph.Node, preferred string) error {
	candidates, err := p.candidates(n)
	if err != nil {
		return attach(cannotAssign(n.Name, err), n.Name)
	}
	chosen := candidates[0]
	if preferred != "" {
		for _, d := range candidates {
			if d.name == preferred {
				chosen = d
			}
		}
	}
	n.Assigned = chosen.name
	p.logAssigned(n)
	return p.limitToAssigned(n)
}

func (p *placer) logAssigned(n *graph.Node) {
	if p.o.Log != nil {
		p.o.Log(n.Name + ": (" + n.Op.Name + "): " + n.Assigned)
	}
}

// isGenerator reports whether a node has no inputs and one output that is not a reference.
func isGenerator(n *graph.Node) bool {
	return len(n.InTypes) == 0 && len(n.OutTypes) == 1 && !n.OutTypes[0].IsRef()
}

// inputDevice returns the device of the input of a node that only reads its shape or forwards it,
// or "" for other nodes.
func inputDevice(n *graph.Node) string {
	switch n.Op.Name {
	case "Shape", "Size", "Rank":
	case "Identity":
		if !forwards(n) {
			return ""
		}
	default:
		return ""
	}
	if in := n.Input(0).Node; in != nil {
		return in.Assigned
	}
	return ""
}

// forwards reports whether an Identity has no request of its own and connects two nodes with the
// same request. An Identity without consumers counts as connected to a node without a request.
func forwards(n *graph.Node) bool {
	if n.Device != "" || len(n.ControlInputs()) > 0 || len(n.OutEdges()) > 1 || n.Input(0).Node == nil {
		return false
	}
	consumer := ""
	if len(n.OutEdges()) == 1 {
		consumer = n.OutEdges()[0].Dst.Device
	}
	return n.Input(0).Node.Device == consumer
}

// consumersDevice returns the common device of all consumers of a node, or "" if they differ.
func consumersDevice(n *graph.Node) string {
	device := ""
	for i, e := range n.OutEdges() {
		if i > 0 && e.Dst.Assigned != device {
			return ""
		}
		device = e.Dst.Assigned
	}
	return device
}
