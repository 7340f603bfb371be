package executor

import "sync/atomic"

// region is a part of a graph that runs as one node. Its nodes are cheap and have no effects, and
// what they make goes to other nodes of the region only, except for what the last one makes, the
// root. So nobody can tell whether each runs when its own inputs have arrived, or all when all
// have. In logic synthesis it is called a fanout-free region.
type region struct {
	// in an order in which they can run. Edges lead from one to another; those of the root are the
	// region's.
	nodes []node
	slow  atomic.Int32
}

// What a region takes that is not cheap any more, in nanoseconds, and for how many calls one after
// the other: a single call may have been interrupted.
const (
	slowRegionNanos = 500_000
	slowRegionCalls = 8
)

// isSlow takes note of the time of a call. It reports whether the region has become slow, with larger
// inputs for example.
func (reg *region) isSlow(nanos int64) bool {
	if nanos >= slowRegionNanos {
		return reg.slow.Add(1) >= slowRegionCalls
	}
	if reg.slow.Load() != 0 {
		reg.slow.Store(0)
	}
	return false
}

// callRegion calls the kernels of a region. The inputs of its nodes from outside have arrived; the
// others are filled here.
func (t *task) callRegion(reg *region) {
	n := &reg.nodes[0]
	defer func() {
		if v := recover(); v != nil {
			t.err = n.explain(t.panicked(n, v))
		}
	}()
	values := t.it.values
	for i := range reg.nodes {
		n = &reg.nodes[i]
		ins, outs := values[n.in:n.in+n.numIn], t.outputs(n)
		switch n.kind {
		case constant:
			outs[0].Tensor = n.value.Retain()
		case forward:
			move(&outs[0], &ins[0])
		default:
			t.ctx.Node = n.name
			t.ctx.Bind(ins, outs, n.outTypes)
			t.err = n.kern.Compute(&t.ctx)
			t.verify(n)
			if t.err != nil || t.ctx.Dead {
				release(outs)
				t.outputs(t.node)
				t.dead = i+1 < len(reg.nodes) // not of the root, which has run
				return
			}
		}
		release(ins)
		if i+1 == len(reg.nodes) {
			return
		}
		for j := range n.edges {
			e := &n.edges[j]
			if e.last {
				move(&values[e.slot], &outs[e.out])
			} else {
				values[e.slot].Tensor = outs[e.out].Tensor.Retain()
			}
		}
		release(outs)
	}
}
