package executor

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// task is one execution of a node by its kernel. It can run without the ownership of its run: what
// it touches, the node's input slots, belongs to it until it is finished.
type task struct {
	run   *run
	node  *node
	it    *iteration
	ctx   kernel.Context
	outs  []kernel.Value
	dead  bool // the node is: only transfers run then
	err   error
	stats *NodeStats // nil when nobody asked

	state  atomic.Int32 // of an asynchronous kernel
	finish func(error)  // finished, as the callback of asynchronous kernels
	next   *task        // in the inbox or the free list
}

// States of an asynchronous kernel's task.
const (
	starting int32 = iota // ComputeAsync has not returned
	waiting               // it has, and the callback has not come
	finished              // the callback has come
)

// prepare makes the task ready to execute n, whose inputs have arrived in it.
func (t *task) prepare(n *node, it *iteration, dead bool) {
	t.node, t.it, t.dead = n, it, dead
	ctx := &t.ctx
	ctx.Node, ctx.Dead = n.name, dead
	ctx.At = kernel.FrameIter{Frame: it.frame.id, Iter: it.num}
	ctx.Bind(it.inputs(n), t.outputs(n), n.outTypes)
	if t.run.opts.Stats != nil {
		t.stats = t.run.newStats(n)
	}
}

// outputs makes slab for the outputs of a node.
func (t *task) outputs(n *node) []kernel.Value {
	if cap(t.outs) < int(n.numOut) {
		t.outs = make([]kernel.Value, n.numOut)
	}
	t.outs = t.outs[:n.numOut]
	return t.outs
}

// execute calls the kernel. It reports false if the task is still under way: it will be pushed to
// the inbox.
func (t *task) execute() bool {
	n := t.node
	if n.refs {
		if err := n.resolve(t.it); err != nil {
			t.err = n.attach(err)
			return true
		}
	}
	if n.region != nil {
		t.callRegion(n.region)
		return true
	}
	if t.stats != nil {
		t.stats.start()
	}
	if !n.waits {
		t.call()
		t.check()
		return true
	}
	t.state.Store(starting)
	t.callAsync()
	return !t.state.CompareAndSwap(starting, waiting)
}

// measure is execute with the time of the call added to the node's average.
func (t *task) executeTimed() bool {
	n, begin := t.node, mono.Nanos()
	finished := t.execute()
	took := mono.Nanos() - begin
	n.addCost(took)
	if n.region != nil && n.region.isSlow(took) {
		t.run.p.e.fused.Store(nil)
	}
	return finished
}

func (t *task) call() {
	defer func() {
		if v := recover(); v != nil {
			t.err = t.panicked(t.node, v)
		}
	}()
	t.err = t.node.kern.Compute(&t.ctx)
}

func (t *task) callAsync() {
	defer func() {
		if v := recover(); v != nil {
			t.finish(t.panicked(t.node, v))
		}
	}()
	t.node.async.ComputeAsync(&t.ctx, t.finish)
}

// panicked turns the panic of a node's kernel into an error of its step.
func (t *task) panicked(n *node, v any) error {
	t.run.p.e.log.Error("kernel panic", "node", n.name, "op", n.op, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return status.Internalf("Kernel of op %s panicked: %v", n.op, v)
}

// done takes the result of an asynchronous kernel. A second call is ignored.
func (t *task) done(err error) {
	if t.state.Load() == finished {
		return
	}
	t.err = err
	t.check()
	if t.state.Swap(finished) == waiting && t.run.completions.push(t) {
		t.run.resume()
	}
}

// check verifies what the kernel left as outputs.
func (t *task) check() {
	if t.stats != nil {
		t.stats.end()
		t.stats.addOutputs(t)
	}
	t.verify(t.node)
}

// verify is check for one node, which is the task's or part of its region.
func (t *task) verify(n *node) {
	if t.err != nil {
		t.err = n.explain(t.err)
		return
	}
	for i := range t.outs {
		out := &t.outs[i]
		if !present(out) {
			if !t.ctx.Dead && !n.transfer && !n.unused[i] {
				t.err = status.Internalf("Missing %d-th output from {{node %s}}", i, n.name)
			}
			continue
		}
		have, want := out.Tensor.DType(), n.outTypes[i]
		if out.Ref != nil && want.IsRef() {
			continue
		}
		if out.Ref != nil || have != want {
			t.err = status.Internalf("Output %d of type %v does not match declared output type %v for node {{node %s}}",
				i, have, want, n.name)
		}
	}
}

// present reports whether a value is one: a dead output is not.
func present(v *kernel.Value) bool { return v.Tensor.Initialized() || v.Ref != nil }
