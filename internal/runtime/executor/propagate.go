package executor

import "github.com/weft-ml/weft/kernel"

// activate pushes a node on the stack of ready nodes.
func (r *run) activate(n *node, it *iteration, dead bool) {
	it.running++
	r.ready = append(r.ready, activation{n, it, dead})
}

// propagate delivers the outputs of a node along its edges to an iteration. A dead node delivers
// dead values. The last edge of an output moves the value, and the others copy it with a reference
// of their own. Values without an edge stay in outs.
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

// mergeFired is the pending count of a Merge that has been activated. Inputs that arrive later are
// ignored.
const mergeFired = -1 << 30

// arriveAtMerge is the part of propagate for edges to a Merge. A Merge is ready when its control
// inputs have arrived and either one live input has arrived or all inputs are dead. A dead Enter
// makes the Merge of a loop dead at once: the loop is on a branch that was not taken, so its
// NextIteration will never deliver.
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
	case c.pending&1 == 0: // not the first live input
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
