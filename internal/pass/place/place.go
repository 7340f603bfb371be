// Package place decides on which device each node of a graph runs.
//
// Nodes are joined to groups that must share a device: by reference and resource edges, and by
// colocation requests (the attribute _class). A group has what its members ask for, merged, and the
// types of devices that have kernels for all of them. Each node then gets the first device, in
// order of preference, that its group can have, or the device of its input or consumer where that
// saves a transfer. Rules, order and texts of errors are those of TensorFlow's placer, so that a
// graph that is placed there is placed here, in the same way.
package place

import (
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Options are what placement needs beside the graph.
type Options struct {
	Devices []string // full names of the devices that nodes can be placed on
	// full name of the device of the session: what is free to be anywhere stays on its task
	Client  string
	Kernels Kernels
	// where no device has the type or number that is asked for, take another of the same task
	Soft bool

	// Log is called with a line "name: (Op): device" for each node that is placed, and for each
	// request that is ignored. May be nil.
	Log func(line string)
	// Warn is called when resources are moved from the device that they were asked to be on. May be
	// nil.
	Warn func(line string)
}

// Kernels tells which operations can run where. *kernel.Registry implements it.
type Kernels interface {
	opdef.Lookup
	Kernels(op string) []kernel.Impl
}

// Place sets the device of every node that has none yet; nodes that have one keep it, and others in
// their group follow them. When it fails, some nodes may have been placed.
func Place(g *graph.Graph, o Options) error {
	if len(o.Devices) == 0 {
		return status.FailedPreconditionf("No devices are registered")
	}
	devices, err := newDeviceSet(o.Devices, o.Client)
	if err != nil {
		return err
	}
	p := newPlacer(g, &o, devices, &bodies{seen: map[string]*bodyGroups{}})
	if err := p.buildGroups(); err != nil {
		return err
	}
	return p.assignAll()
}

// KeepState prepares the placement of a graph that has been extended: its nodes with state are
// assigned as the nodes of the same names in the graph before are, and the next Place decides on
// all others anew, as TensorFlow does.
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
	groups  []group // by node ID; those of nodes that are no root only lead to the root
	// number of each device that nodes are assigned to, in order of first use
	used   map[string]int
	ends   ends
	bodies *bodies
}

func newPlacer(g *graph.Graph, o *Options, devices *deviceSet, b *bodies) *placer {
	return &placer{
		g: g, o: o, devices: devices, groups: make([]group, g.NumIDs()), used: map[string]int{}, bodies: b,
		ends: ends{in: map[*graph.Node][]member{}, out: map[graph.Edge]member{}},
	}
}

// assignAll gives every node a device of its group. Nodes without inputs, which can go wherever
// their consumers are, come last.
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

// assign places a node on the preferred device if its group can have it, and else on the first that
// it can have.
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

// isGenerator reports whether a node has no inputs and one output that is no reference.
func isGenerator(n *graph.Node) bool {
	return len(n.InTypes) == 0 && len(n.OutTypes) == 1 && !n.OutTypes[0].IsRef()
}

// inputDevice returns the device of the input of a node that only looks at the shape of it or
// passes it on; "" for other nodes.
func inputDevice(n *graph.Node) string {
	switch n.Op.Name {
	case "Shape", "Size", "Rank":
	case "Identity":
		if !passesOn(n) {
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

// passesOn reports whether an Identity node is free to be anywhere and stands between two nodes
// that ask for the same device. The end of the graph asks for none.
func passesOn(n *graph.Node) bool {
	if n.Device != "" || len(n.ControlInputs()) > 0 || len(n.OutEdges()) > 1 || n.Input(0).Node == nil {
		return false
	}
	consumer := ""
	if len(n.OutEdges()) == 1 {
		consumer = n.OutEdges()[0].Dst.Device
	}
	return n.Input(0).Node.Device == consumer
}

// consumersDevice returns the device of all consumers of a node; "" if they have several.
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
