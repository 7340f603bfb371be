package executor

import "slices"

// runsBeforeFusion is the number of runs without an error after which a program is fused. Every
// node that ran in each of them was timed.
const runsBeforeFusion = 2

// limits bound the regions that are built.
type limits struct {
	kernels int   // minimum per region
	nodes   int   // maximum per region
	nanos   int64 // maximum sum of average times per region, ns
	each    int64 // exclusive maximum of the average time of a node, ns
}

// defaultLimits are the limits outside of tests. With fewer than 4 kernels a region saves nothing.
// Most regions of 64 nodes take some 10 µs, which is worth a helper goroutine. A region delays its
// first node until the inputs of the last have arrived, and 100 µs bound that delay.
var defaultLimits = limits{kernels: 4, nodes: 64, nanos: 100_000, each: expensive}

// program returns the program of runs that collect no statistics.
func (e *Executor) program() *program {
	if p := e.fused.Load(); p != nil {
		return p
	}
	return &e.plain
}

// countRun counts a run that ended without an error. It fuses the program when the times of its
// nodes are known.
func (e *Executor) countRun() {
	if e.runs.Load() < runsBeforeFusion && e.runs.Add(1) == runsBeforeFusion {
		e.fuse(defaultLimits)
	}
}

// fuse installs a program with regions, if the limits allow any.
func (e *Executor) fuse(l limits) {
	if len(e.plain.nodes) < l.kernels {
		return
	}
	f := newFusion(&e.plain, l)
	if f.findRegions() {
		e.fused.Store(f.build())
	}
}

// fusion finds the regions of a program. Its slices are indexed by the position of a node.
type fusion struct {
	from    *program
	limits  limits
	sources [][]int32    // positions of the data inputs
	regions []*candidate // nil for nodes outside of regions
	// scratch of grow: sources whose consumers are not all in the candidate, and the search that
	// each was last found in
	split   []int32
	foundIn []int32
	search  int32
}

// candidate is a region that may still grow.
type candidate struct {
	nodes   []int32
	kernels int
	nanos   int64
	open    []int32 // sources of its inputs; part of it if it has all their consumers
}

func newFusion(p *program, l limits) *fusion {
	f := &fusion{
		from: p, limits: l, sources: make([][]int32, len(p.nodes)), regions: make([]*candidate, len(p.nodes)),
		foundIn: make([]int32, len(p.nodes)),
	}
	inputs := 0
	for i := range p.nodes {
		inputs += int(p.nodes[i].numIn)
	}
	slab := make([]int32, inputs)
	for i := range p.nodes {
		n := p.nodes[i].numIn
		f.sources[i], slab = slab[:n:n], slab[n:]
	}
	for i := range p.nodes {
		for j := range p.nodes[i].edges {
			if e := &p.nodes[i].edges[j]; e.slot != control {
				f.sources[e.dst.pos][e.slot-e.dst.in] = int32(i)
			}
		}
	}
	return f
}

// findRegions grows regions from the inputs of the graph to its outputs and keeps those within the
// limits. It reports whether it found any.
func (f *fusion) findRegions() bool {
	candidates, positions := make([]candidate, len(f.regions)), make([]int32, len(f.regions))
	for i := range f.from.nodes {
		n, c := &f.from.nodes[i], &candidates[i]
		if !n.fusible {
			continue
		}
		positions[i] = int32(i)
		c.nodes, c.open = positions[i:i+1:i+1], f.sources[i]
		if n.kind == compute {
			c.kernels, c.nanos = 1, n.nanos()
			if c.nanos == 0 || c.nanos >= f.limits.each {
				continue
			}
		}
		f.regions[i] = c
		f.grow(c)
	}
	some := false
	for i, c := range f.regions {
		switch {
		case c == nil:
		case c.kernels < f.limits.kernels:
			f.regions[i] = nil
		default:
			some = true
		}
	}
	return some
}

// grow merges a candidate into c if c has all its consumers. Nodes are visited in an order in which
// they can run, so all candidates before c have finished growing.
func (f *fusion) grow(c *candidate) {
	split := f.split[:0]
	f.search++
	for len(c.open) > 0 {
		source := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		other := f.regions[source]
		switch {
		case other == nil || other == c || f.foundIn[source] == f.search:
		case len(c.nodes)+len(other.nodes) > f.limits.nodes || c.nanos+other.nanos > f.limits.nanos:
		case !f.feedsOnly(source, c):
			f.foundIn[source] = f.search
			split = append(split, source) // retried when more of its consumers are in c
		default:
			c = f.merge(c, other)
			c.open = append(c.open, split...)
			split = split[:0]
			f.search++
		}
	}
	c.open = append(c.open, split...)
	f.split = split
}

// feedsOnly reports whether all edges of a node are data edges to nodes of c.
func (f *fusion) feedsOnly(pos int32, c *candidate) bool {
	edges := f.from.nodes[pos].edges
	for i := range edges {
		if e := &edges[i]; e.slot == control || f.regions[e.dst.pos] != c {
			return false
		}
	}
	return true
}

// merge joins two candidates and returns the result, which is the larger of the two.
func (f *fusion) merge(c, d *candidate) *candidate {
	if len(c.nodes) < len(d.nodes) {
		c, d = d, c
	}
	for _, pos := range d.nodes {
		f.regions[pos] = c
	}
	c.nodes = append(c.nodes, d.nodes...)
	c.kernels += d.kernels
	c.nanos += d.nanos
	c.open = append(c.open, d.open...)
	return c
}

// build compiles the program again with the regions.
func (f *fusion) build() *program {
	for i, c := range f.regions {
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
	r := &rebuilder{f, p, make([]*node, len(f.regions)), make([]int32, len(f.regions))}
	r.buildNodes()
	r.buildEdges()
	for _, n := range f.from.roots {
		unit := r.units[n.pos]
		first := unit.region == nil || f.regions[n.pos].nodes[0] == n.pos
		if first && p.frames[n.frame].initial[unit.count].pending == 0 {
			p.roots = append(p.roots, unit)
		}
	}
	return p
}

// rebuilder copies the nodes of a program to a program with regions. Its slices are indexed by the
// position of a node in the old program.
type rebuilder struct {
	*fusion
	to    *program
	units []*node // node of the new program that runs the old one: its copy or its region
	slots []int32 // slot of the first input in the new program
}

// buildNodes creates the new nodes with their slots and counts.
func (r *rebuilder) buildNodes() {
	old := r.from.nodes
	r.to.nodes = make([]node, r.numNodes())
	made := 0
	for i := range old {
		n, c := &old[i], r.regions[i]
		if r.isInterior(i) {
			continue // the region has the position of its root
		}
		unit := &r.to.nodes[made]
		made++
		n.copyTo(unit)
		info := r.to.frames[n.frame]
		unit.in, unit.count = int32(info.slots), int32(len(info.initial))
		positions := []int32{int32(i)}
		if c != nil {
			positions = c.nodes
			unit.kind, unit.numIn, unit.region = compute, 0, &region{nodes: make([]node, len(positions))}
			unit.cost.Store(0)
		}
		pending := int32(0)
		for k, pos := range positions {
			m := &old[pos]
			r.units[pos], r.slots[pos] = unit, int32(info.slots)
			info.slots += int(m.numIn)
			pending += r.from.frames[m.frame].initial[m.count].pending
			if c == nil {
				continue
			}
			unit.numIn += m.numIn
			m.copyTo(&unit.region.nodes[k])
			unit.region.nodes[k].in = r.slots[pos]
			if k+1 < len(positions) {
				pending -= int32(len(m.edges)) // all lead to nodes of the region
			}
		}
		info.initial = append(info.initial, count{pending: pending})
	}
}

// numNodes returns the number of nodes of the new program.
func (r *rebuilder) numNodes() int {
	n := 0
	for i := range r.regions {
		if !r.isInterior(i) {
			n++
		}
	}
	return n
}

// isInterior reports whether a node is part of a region and not its root.
func (r *rebuilder) isInterior(pos int) bool {
	c := r.regions[pos]
	return c != nil && c.nodes[len(c.nodes)-1] != int32(pos)
}

// buildEdges creates the new edges. Edges of consecutive nodes are adjacent in memory.
func (r *rebuilder) buildEdges() {
	old := r.from.nodes
	total := 0
	for i := range old {
		total += len(old[i].edges)
	}
	slab := make([]edge, 0, total)
	for i := range old {
		dst := r.units[i]
		if r.isInterior(i) {
			k, _ := slices.BinarySearch(r.regions[i].nodes, int32(i))
			dst = &dst.region.nodes[k]
		}
		first := len(slab)
		for _, e := range old[i].edges {
			before, after := e.dst, r.units[e.dst.pos]
			e.dst, e.count = after, after.count
			if e.slot != control {
				e.slot += r.slots[before.pos] - before.in
			}
			slab = append(slab, e)
		}
		dst.edges = slices.Clip(slab[first:])
	}
}

// copyTo copies the fields of a node. A node has an atomic field, so it cannot be copied by
// assignment.
func (n *node) copyTo(dst *node) {
	dst.kind, dst.transfer, dst.refs, dst.waits = n.kind, n.transfer, n.refs, n.waits
	dst.numIn, dst.in, dst.count, dst.numOut = n.numIn, n.in, n.count, n.numOut
	dst.edges, dst.kern, dst.outTypes, dst.name, dst.details = n.edges, n.kern, n.outTypes, n.name, n.details
	dst.cost.Store(n.cost.Load())
}
