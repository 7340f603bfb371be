package executor

import "sync/atomic"

// cone is a part of a graph that runs as one node. Its nodes are cheap and have no effects, and
// what they make goes to other nodes of the cone only, except for what the last one makes, the
// root. So nobody can tell whether each runs when its own inputs have arrived, or all when all
// have. In logic synthesis it is called a fanout-free cone.
type cone struct {
	// in an order in which they can run. Edges lead from one to another; those of the root are the
	// cone's.
	nodes []node
	slow  atomic.Int32
}

// What a cone takes that is not cheap any more, in nanoseconds, and for how many calls one after
// the other: a single call may have been interrupted.
const (
	slowConeNanos = 500_000
	slowConeCalls = 8
)

// isSlow takes note of the time of a call. It reports whether the cone has become slow, with larger
// inputs for example.
func (c *cone) isSlow(nanos int64) bool {
	if nanos >= slowConeNanos {
		return c.slow.Add(1) >= slowConeCalls
	}
	if c.slow.Load() != 0 {
		c.slow.Store(0)
	}
	return false
}

// callCone calls the kernels of a cone. The inputs of its nodes from outside have arrived; the
// others are filled here.
func (t *task) callCone(c *cone) {
	n := &c.nodes[0]
	defer func() {
		if v := recover(); v != nil {
			t.err = n.explain(t.panicked(n, v))
		}
	}()
	values := t.it.values
	for i := range c.nodes {
		n = &c.nodes[i]
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
				t.dead = i+1 < len(c.nodes) // not of the root, which has run
				return
			}
		}
		release(ins)
		if i+1 == len(c.nodes) {
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
