package place

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/status"
)

// group is a set of nodes that must share a device. It is a tree in a union-find forest. The root
// holds the properties of the group.
type group struct {
	parent int // ID of a node closer to the root; its own ID at the root
	rank   int // upper bound of the height

	// Assigned device of the members, request of those members that create resources, and request
	// of all members. Each is at least as specific as the one before.
	assigned  device.Spec
	resource  device.Spec
	requested device.Spec

	types      []supported
	candidates []*candidate // nil until computed
	// index of the assigned device in order of first use, or -1
	index int
}

func newGroup(id int, types []supported) group {
	return group{parent: id, assigned: device.Any, resource: device.Any, requested: device.Any, types: types, index: -1}
}

// root returns the ID of the root of a node's group and shortens the path to it.
func (p *placer) root(id int) int {
	for p.groups[id].parent != id {
		next := &p.groups[id].parent
		*next = p.groups[*next].parent
		id = *next
	}
	return id
}

func (p *placer) groupOf(n *graph.Node) *group { return &p.groups[p.root(n.ID)] }

// member is a node in a group, or one end of a call whose body is inspected.
type member struct {
	id       int         // of the node; IDs of ends follow those of all nodes
	src, dst *graph.Node // the node, or the nodes of the edge of an end; one of them may be nil
	op       string
}

func memberOf(n *graph.Node) member { return member{id: n.ID, dst: n, op: n.Op.Name} }

// name returns the name of the member for errors. The names of ends are not stored: a call with a
// long name may have a million ends.
func (m member) name() string {
	if m.src == nil {
		return m.dst.Name
	}
	return m.src.Name + "_" + m.dst.Name
}

// join merges the groups of two members. If it fails, nothing is changed.
func (p *placer) join(x, y member) error {
	into, from := p.root(x.id), p.root(y.id)
	if into == from {
		return nil
	}
	if p.groups[into].rank < p.groups[from].rank {
		into, from = from, into
	}
	a, b := &p.groups[into], &p.groups[from]
	merged := *a
	if err := merged.merge(b, p.o.Soft); err != nil {
		return status.InvalidArgumentf("Cannot colocate nodes {{colocation_node %s}} and {{colocation_node %s}}: %s", x.name(), y.name(), err.Error())
	}
	if merged.types = intersect(a.types, b.types); len(merged.types) == 0 {
		return status.InvalidArgumentf("Cannot colocate nodes {{colocation_node %s}} and {{colocation_node %s}} because no device type "+
			"supports both of those nodes and the other nodes colocated with them.%s%s",
			x.name(), y.name(), p.describeGroup(p.root(x.id)), p.describeGroup(p.root(y.id)))
	}
	if a.rank == b.rank {
		merged.rank++
	}
	merged.candidates = nil
	*a = merged
	b.parent = into
	return nil
}

// merge adds the requests of b to g.
func (g *group) merge(b *group, soft bool) error {
	var err error
	if g.assigned, err = g.assigned.Merge(b.assigned); err != nil {
		return err
	}
	if g.resource, err = g.resource.Merge(b.resource); err != nil {
		return err
	}
	if soft {
		g.requested, err = g.requested.MergeSoft(b.requested)
	} else {
		g.requested, err = g.requested.Merge(b.requested)
	}
	g.requested = g.requested.With(g.assigned).With(g.resource)
	return err
}

// limitToAssigned sets the device of a group to the assigned device of a node.
func (p *placer) limitToAssigned(n *graph.Node) error {
	g := p.groupOf(n)
	index, ok := p.used[n.Assigned]
	if !ok {
		index = len(p.used) + 1
		p.used[n.Assigned] = index
	}
	if g.index == index {
		return nil
	}
	spec, err := device.Parse(n.Assigned)
	if err == nil {
		err = g.limit(spec)
	}
	if err != nil {
		return status.Internalf("Constraining by assigned device should not cause an error. Node %s has the assigned device name \"%s\". "+
			"Error: %s", n.Name, n.Assigned, err.Error())
	}
	g.index, g.candidates = index, nil
	return nil
}

func (g *group) limit(spec device.Spec) error {
	var err error
	if g.assigned, err = g.assigned.Merge(spec); err != nil {
		return err
	}
	if g.resource, err = g.resource.MergeOverride(spec); err != nil {
		return err
	}
	g.requested, err = g.requested.MergeOverride(spec)
	return err
}

// String formats the group as TensorFlow's errors do.
func (g *group) String() string {
	return fmt.Sprintf("Member(assigned_device_name_index_=%d requested_device_name_='%v' assigned_device_name_='%v' "+
		"resource_device_name_='%v' supported_device_types_=[%s] possible_devices_=[%s]",
		g.index, g.requested, g.assigned, g.resource, typeNames(g.types, ", "), strings.Join(namesOf(g.candidates), ", "))
}
