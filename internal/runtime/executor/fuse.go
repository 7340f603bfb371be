package executor

import "slices"

// runsBeforeFusion is after how many runs a program is fused. Every node that ran in each of them
// was timed.
const runsBeforeFusion = 2

// limits say what becomes a cone.
type limits struct {
	kernels int   // at least
	nodes   int   // at most
	nanos   int64 // of a cone, at most
	each    int64 // nanoseconds of a node, less than that
}

// usual are the limits that pay. A cone saves nothing with fewer kernels; most take some 10 µs,
// which is worth another goroutine and delays nobody.
var usual = limits{kernels: 4, nodes: 64, nanos: 100_000, each: expensive}

// program returns what runs execute that collect no statistics.
func (e *Executor) program() *program {
	if p := e.fused.Load(); p != nil {
		return p
	}
	return &e.plain
}

// ranWell counts a run that ended without an error. When the times of the nodes are known, it fuses
// them.
func (e *Executor) ranWell() {
	if e.runs.Load() < runsBeforeFusion && e.runs.Add(1) == runsBeforeFusion {
		e.fuse(usual)
	}
}

// fuse makes cones, if there are any.
func (e *Executor) fuse(l limits) {
	if len(e.plain.nodes) < l.kernels {
		return
	}
	f := newFusion(&e.plain, l)
	if f.findCones() {
		e.fused.Store(f.build())
	}
}

// fusion finds the cones of a program. The slices go by the place of a node.
type fusion struct {
	from    *program
	limits  limits
	sources [][]int32    // of the data inputs
	cones   []*candidate // nil for nodes that run by themselves
	split   []int32      // for grow
}

// candidate is a cone that may still grow.
type candidate struct {
	nodes   []int32
	kernels int
	nanos   int64
	open    []int32 // nodes that feed it, and would be part of it if they fed nothing else
}

func newFusion(p *program, l limits) *fusion {
	f := &fusion{
		from: p, limits: l, sources: make([][]int32, len(p.nodes)), cones: make([]*candidate, len(p.nodes)),
	}
	inputs := 0
	for i := range p.nodes {
		inputs += int(p.nodes[i].numIn)
	}
	room := make([]int32, inputs)
	for i := range p.nodes {
		n := p.nodes[i].numIn
		f.sources[i], room = room[:n:n], room[n:]
	}
	for i := range p.nodes {
		for j := range p.nodes[i].edges {
			if e := &p.nodes[i].edges[j]; e.slot != control {
				f.sources[e.dst.place][e.slot-e.dst.in] = int32(i)
			}
		}
	}
	return f
}

// findCones grows cones from the inputs of the graph to its outputs, and keeps those that pay. It
// reports whether there are any.
func (f *fusion) findCones() bool {
	candidates, places := make([]candidate, len(f.cones)), make([]int32, len(f.cones))
	for i := range f.from.nodes {
		n, c := &f.from.nodes[i], &candidates[i]
		if !n.fusible {
			continue
		}
		places[i] = int32(i)
		c.nodes, c.open = places[i:i+1:i+1], f.sources[i]
		if n.kind == compute {
			c.kernels, c.nanos = 1, n.nanos()
			if c.nanos == 0 || c.nanos >= f.limits.each {
				continue
			}
		}
		f.cones[i] = c
		f.grow(c)
	}
	some := false
	for i, c := range f.cones {
		switch {
		case c == nil:
		case c.kernels < f.limits.kernels:
			f.cones[i] = nil
		default:
			some = true
		}
	}
	return some
}

// grow takes candidates into c that feed nothing else. Nodes lie in an order in which they can run,
// so that all candidates before c have grown.
func (f *fusion) grow(c *candidate) {
	split := f.split[:0]
	for len(c.open) > 0 {
		source := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		other := f.cones[source]
		switch {
		case other == nil || other == c:
		case len(c.nodes)+len(other.nodes) > f.limits.nodes || c.nanos+other.nanos > f.limits.nanos:
		case !f.feedsOnly(source, c):
			if !slices.Contains(split, source) {
				split = append(split, source) // until more of its consumers are in c
			}
		default:
			c = f.merge(c, other)
			c.open = append(c.open, split...)
			split = split[:0]
		}
	}
	c.open = append(c.open, split...)
	f.split = split
}

// feedsOnly reports whether all edges of a node lead to c.
func (f *fusion) feedsOnly(place int32, c *candidate) bool {
	edges := f.from.nodes[place].edges
	for i := range edges {
		if e := &edges[i]; e.slot == control || f.cones[e.dst.place] != c {
			return false
		}
	}
	return true
}

// merge makes one candidate of two. The larger stays.
func (f *fusion) merge(c, d *candidate) *candidate {
	if len(c.nodes) < len(d.nodes) {
		c, d = d, c
	}
	for _, place := range d.nodes {
		f.cones[place] = c
	}
	c.nodes = append(c.nodes, d.nodes...)
	c.kernels += d.kernels
	c.nanos += d.nanos
	c.open = append(c.open, d.open...)
	return c
}

// build compiles the program again, with the cones that were found.
func (f *fusion) build() *program {
	for i, c := range f.cones {
		if c != nil && c.nodes[0] == int32(i) {
			slices.Sort(c.nodes) // the root is the last
		}
	}
	p := &program{e: f.from.e, frames: make([]*frameInfo, len(f.from.frames))}
	for i, info := range f.from.frames {
		own := *info
		own.slots, own.initial = 0, nil
		p.frames[i] = &own
	}
	r := &refit{f, p, make([]*node, len(f.cones)), make([]int32, len(f.cones))}
	r.place()
	r.connect()
	for _, n := range f.from.roots {
		unit := r.units[n.place]
		first := unit.cone == nil || f.cones[n.place].nodes[0] == n.place
		if first && p.frames[n.frame].initial[unit.count].pending == 0 {
			p.roots = append(p.roots, unit)
		}
	}
	return p
}

// refit is what becomes of the nodes of a program when cones are made. The slices go by their
// places before.
type refit struct {
	*fusion
	to    *program
	units []*node // what runs the node: itself or its cone
	slots []int32 // of the first input
}

// place makes the new nodes, with their slots and counts.
func (r *refit) place() {
	old := r.from.nodes
	r.to.nodes = make([]node, r.count())
	made := 0
	for i := range old {
		n, c := &old[i], r.cones[i]
		if r.within(i) {
			continue // the cone lies where its root does
		}
		unit := &r.to.nodes[made]
		made++
		n.copyTo(unit)
		info := r.to.frames[n.frame]
		unit.in, unit.count = int32(info.slots), int32(len(info.initial))
		places := []int32{int32(i)}
		if c != nil {
			places = c.nodes
			unit.kind, unit.numIn, unit.cone = compute, 0, &cone{nodes: make([]node, len(places))}
			unit.cost.Store(0)
		}
		pending := int32(0)
		for k, place := range places {
			m := &old[place]
			r.units[place], r.slots[place] = unit, int32(info.slots)
			info.slots += int(m.numIn)
			pending += r.from.frames[m.frame].initial[m.count].pending
			if c == nil {
				continue
			}
			unit.numIn += m.numIn
			m.copyTo(&unit.cone.nodes[k])
			unit.cone.nodes[k].in = r.slots[place]
			if k+1 < len(places) {
				pending -= int32(len(m.edges)) // all lead to the cone
			}
		}
		info.initial = append(info.initial, count{pending: pending})
	}
}

// count returns the number of new nodes.
func (r *refit) count() int {
	n := 0
	for i := range r.cones {
		if !r.within(i) {
			n++
		}
	}
	return n
}

// within reports whether a node is part of a cone and not its root, in whose place the cone is.
func (r *refit) within(place int) bool {
	c := r.cones[place]
	return c != nil && c.nodes[len(c.nodes)-1] != int32(place)
}

// connect makes the new edges, those of nodes that follow each other next to each other.
func (r *refit) connect() {
	old := r.from.nodes
	total := 0
	for i := range old {
		total += len(old[i].edges)
	}
	room := make([]edge, 0, total)
	for i := range old {
		dst := r.units[i]
		if r.within(i) {
			k, _ := slices.BinarySearch(r.cones[i].nodes, int32(i))
			dst = &dst.cone.nodes[k]
		}
		first := len(room)
		for _, e := range old[i].edges {
			before, after := e.dst, r.units[e.dst.place]
			e.dst, e.count = after, after.count
			if e.slot != control {
				e.slot += r.slots[before.place] - before.in
			}
			room = append(room, e)
		}
		dst.edges = slices.Clip(room[first:])
	}
}

// copyTo makes dst a node that does the same.
func (n *node) copyTo(dst *node) {
	dst.kind, dst.transfer, dst.refs, dst.waits = n.kind, n.transfer, n.refs, n.waits
	dst.numIn, dst.in, dst.count, dst.numOut = n.numIn, n.in, n.count, n.numOut
	dst.edges, dst.kern, dst.outTypes, dst.name, dst.details = n.edges, n.kern, n.outTypes, n.name, n.details
	dst.cost.Store(n.cost.Load())
}
