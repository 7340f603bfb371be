package executor

import "github.com/weft-ml/weft/kernel"

// activate adds a node to those that are ready.
func (r *run) activate(n *node, it *iteration, dead bool) {
	it.running++
	r.ready = append(r.ready, activation{n, it, dead})
}

// propagate delivers the outputs of a node, none if it is dead, along its edges to an iteration.
// Values that no edge takes stay in outs.
func (r *run) propagate(n *node, it *iteration, dead bool, outs []kernel.Value) {
	for i := range n.edges {
		e := &n.edges[i]
		c := &it.counts[e.count]
		var value *kernel.Value // nil if dead
		if e.slot != control && !dead && present(&outs[e.out]) {
			value = &outs[e.out]
		}
		if e.merge {
			r.arriveAtMerge(n, e, it, value)
			continue
		}
		switch {
		case value == nil:
			if dead || e.slot != control {
				c.dead++
			}
		case e.last:
			it.values[e.slot] = *value
			*value = kernel.Value{}
		default:
			it.values[e.slot] = kernel.Value{Tensor: value.Tensor.Retain(), Ref: value.Ref}
		}
		if c.pending--; c.pending == 0 {
			r.activate(e.dst, it, c.dead > 0)
		}
	}
}

// gone is the pending count of a Merge that has been activated: nothing that still arrives matters.
const mergeFired = -1 << 30

// arriveAtMerge is what propagate does for an edge to a Merge. The Merge is ready when its control
// inputs have arrived and either one live input or the deadness of all. A dead Enter makes it dead
// at once: the loop lies on a branch that was not taken, and no NextIteration will ever come.
func (r *run) arriveAtMerge(src *node, e *edge, it *iteration, value *kernel.Value) {
	n, c := e.dst, &it.counts[e.count]
	if c.pending < 0 {
		return
	}
	isDead := false
	switch {
	case e.slot == control:
		c.pending -= 2
		isDead = c.dead == n.numIn
	case value == nil:
		c.dead++
		isDead = c.dead == n.numIn || src.kind == enter
	case c.pending&1 == 0: // a second live input
		return
	default:
		it.values[e.slot] = kernel.Value{Tensor: value.Tensor.Retain(), Ref: value.Ref}
		c.pending &^= 1
	}
	switch {
	case c.pending == 0:
		c.pending = mergeFired
		r.activate(n, it, false)
	case c.pending == 1 && isDead:
		c.pending = mergeFired
		r.activate(n, it, true)
	}
}
