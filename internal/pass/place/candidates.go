package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// candidates returns the devices that a node's group can be placed on, the most preferred first.
func (p *placer) candidates(n *graph.Node) ([]*candidate, error) {
	g := p.groupOf(n)
	if len(g.candidates) == 0 {
		g.candidates = p.findCandidates(g, p.root(n.ID))
	}
	if len(g.candidates) == 0 {
		return nil, p.noDevice(n, g)
	}
	return g.candidates, nil
}

func (p *placer) findCandidates(g *group, root int) []*candidate {
	found := p.devices.match(g.requested, g.types)
	if len(found) == 0 && p.o.Soft && g.requested != device.Any {
		found = p.softCandidates(g, root)
	}
	return found
}

// checkEnds checks that the ends of calls, which are not placed, could be placed.
func (p *placer) checkEnds() error {
	for _, e := range p.ends.all {
		root := p.root(e.id)
		g := &p.groups[root]
		if len(g.candidates) > 0 {
			continue
		}
		if g.candidates = p.findCandidates(g, root); len(g.candidates) == 0 {
			return attach(cannotAssign(e.name(), p.incompatible(e.name(), "", g, root)), e.name())
		}
	}
	return nil
}

func cannotAssign(name string, err error) error {
	return status.InvalidArgumentf("Cannot assign a device for operation %s: %s", name, err.Error())
}

// softCandidates relaxes the requested type and number of the device. It first keeps the requests
// of resources, and then relaxes them as well.
func (p *placer) softCandidates(g *group, root int) []*candidate {
	keeping := g.requested
	if g.assigned.Type == "" && g.resource.Type == "" {
		keeping.Type = ""
	}
	if g.assigned.ID == device.Unset && g.resource.ID == device.Unset {
		keeping.ID = device.Unset
	}
	if found := p.devices.match(keeping, g.types); len(found) > 0 {
		return found
	}
	moving := g.requested
	if g.assigned.Type == "" {
		moving.Type = ""
	}
	if g.assigned.ID == device.Unset {
		moving.ID = device.Unset
	}
	found := p.devices.match(moving, g.types)
	if len(found) > 0 && p.o.Warn != nil {
		p.o.Warn("Failed to place the graph without changing the devices of some resources. Some of the operations (that had to be " +
			"colocated with resource generating operations) are not supported on the resources' devices. Current candidate devices are [\n  " +
			strings.Join(namesOf(found), "\n  ") + "].\nSee below for details of this colocation group:" + p.describeGroup(root))
	}
	return found
}

// noDevice returns the error for a node whose group has no candidate.
func (p *placer) noDevice(n *graph.Node, g *group) error {
	group := p.describeGroup(p.root(n.ID))
	if g.requested == device.Any {
		return status.InvalidArgumentf("Node had no OpKernel registered to support this operation: Operation was %s and inputs were [%s].\n%s",
			n.Op.Name, typeList(n.InTypes), group)
	}
	own, err := device.Parse(n.Device)
	switch {
	case err != nil || own != g.requested:
		return p.incompatible(n.Name, n.Device, g, p.root(n.ID))
	case !p.devices.matchesAny(own):
		gpu := ""
		if strings.EqualFold(own.Type, "gpu") && !slices.Contains(p.devices.types, "GPU") {
			gpu = " The requested device appears to be a GPU, but CUDA is not enabled."
		}
		return status.InvalidArgumentf("{{node %s}} was explicitly assigned to %s but available devices are [ %s ]. Make sure the device "+
			"specification refers to a valid device.%s", n.Name, n.Device, p.devices.sortedNames(), gpu)
	case own.Type != "":
		return status.InvalidArgumentf("Could not satisfy explicit device specification '%s' because no supported kernel for %s devices is "+
			"available.%s\nOp: %s\nNode attrs: %s\nRegistered kernels:\n%s",
			n.Device, own.Type, group, n.Op.Name, n.Attrs.Format(), p.registeredKernels(n.Op.Name))
	default:
		return status.InvalidArgumentf("Could not satisfy explicit device specification '%s'%s", n.Device, group)
	}
}

// incompatible returns the error for a group whose requests conflict.
func (p *placer) incompatible(name, own string, g *group, root int) error {
	return status.InvalidArgumentf("Could not satisfy explicit device specification '%s' because the node {{colocation_node %s}} was "+
		"colocated with a group of nodes that required incompatible device '%v'. All available devices [%s]. %s",
		own, name, g.requested, strings.Join(p.devices.names(), ", "), p.describeGroup(root))
}

// lastWithSpace is the producer version of TensorFlow 1.15. Clients up to that release replace
// {{node x}} in an error by a text that ends with a space, later ones by a text that does not.
const lastWithSpace = 134

func (p *placer) noKernel(n *graph.Node) error {
	types := make(map[string]bool)
	var sorted []string
	for _, d := range p.devices.all {
		if !types[d.spec.Type] {
			types[d.spec.Type] = true
			sorted = append(sorted, d.spec.Type)
		}
	}
	space := " "
	if v := p.g.Versions.Producer; v > 0 && v <= lastWithSpace {
		space = ""
	}
	return status.InvalidArgumentf("No OpKernel was registered to support Op '%s' used by {{node %s}}%swith these attrs: [%s]\n"+
		"Registered devices: [%s]\nRegistered kernels:\n%s",
		n.Op.Name, n.Name, space, n.Attrs.Format(), strings.Join(sorted, ", "), p.registeredKernels(n.Op.Name))
}

func typeList(types []tensor.DType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

func (p *placer) logf(format string, args ...any) {
	if p.o.Log != nil {
		p.o.Log(fmt.Sprintf(format, args...))
	}
}
