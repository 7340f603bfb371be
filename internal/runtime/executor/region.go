package executor

import "sync/atomic"

// region is a fused region: a part of a graph that runs as one node.
//
// The simple design executes every node on its own. Kernels below 5 µs then stay on one core,
// because waking a goroutine costs as much as two or three of them. Fifty chains of additions took
// 330 ns a node without regions and take 182 with them (medians, docs/notes/2026-11-executor.md).
//
// Invariants: all nodes are cheap and have no effects. The outputs of all nodes except the last,
// the root, are consumed within the region only, by data edges. Running the region when all its
// inputs have arrived is therefore unobservable: its interior values have no other consumer. (A
// fanout-free cone, in logic synthesis.) A region has no Merge, so a dead input of any node makes
// the root dead.
type region struct {
	// Nodes in an order in which they can run. The edges of interior nodes lead to other nodes of
	// the region. The edges of the root are those of the region.
	nodes []node
	slow  atomic.Int32 // consecutive slow calls
}

// A region is dropped after slowRegionCalls consecutive calls that took slowRegionNanos, five times
// the time for which regions are built. A single slow call may have been interrupted by the system.
const (
	slowRegionNanos = 500_000
	slowRegionCalls = 8
)

// isSlow records the time of a call. It reports whether the region has become slow, for example
// because its inputs have grown.
func (reg *region) isSlow(nanos int64) bool {
	if nanos >= slowRegionNanos {
		return reg.slow.Add(1) >= slowRegionCalls
	}
	if reg.slow.Load() != 0 {
		reg.slow.Store(0)
	}
	return false
}

// callRegion calls the kernels of a region. The inputs from outside the region have arrived in
// their slots. callRegion fills the other slots.
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
				// If the root itself has run, its control edges stay live.
				t.dead = i+1 < len(reg.nodes)
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
