package executor

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// task is one execution of a node by its kernel. It can run outside of the ownership of its run:
// until it is finished, the input slots of its node belong to it.
type task struct {
	run   *run
	node  *node
	it    *iteration
	ctx   kernel.Context
	outs  []kernel.Value
	dead  bool // the node is dead; only transfers run then
	err   error
	stats *NodeStats // nil if no statistics are collected

	state  atomic.Int32 // of an asynchronous kernel
	finish func(error)  // method value of done, the callback of asynchronous kernels
	next   *task        // in the completion queue or the list of recycled tasks
}

// States of the task of an asynchronous kernel. ComputeAsync and its callback race: the later one
// of the two concludes the task.
const (
	starting int32 = iota // ComputeAsync has not returned
	waiting               // ComputeAsync has returned, and the callback has not been called
	finished              // the callback has been called
)

// prepare sets up the task to execute n in an iteration in which its inputs have arrived.
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

// outputs returns the output slots of the task, resized for a node.
func (t *task) outputs(n *node) []kernel.Value {
	if cap(t.outs) < int(n.numOut) {
		t.outs = make([]kernel.Value, n.numOut)
	}
	t.outs = t.outs[:n.numOut]
	return t.outs
}

// execute calls the kernel. It returns false if the task is still in flight; it will be pushed to
// the completion queue.
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

// executeTimed is execute, and adds the time of the call to the node's average. It drops all
// regions if one has become slow.
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
	if t.err = failpoint.Hit("executor/kernel"); t.err == nil {
		t.err = t.node.kern.Compute(&t.ctx)
	}
}

func (t *task) callAsync() {
	defer func() {
		if v := recover(); v != nil {
			t.finish(t.panicked(t.node, v))
		}
	}()
	t.node.async.ComputeAsync(&t.ctx, t.finish)
}

// panicked logs the panic of a kernel and returns it as an error of the step. A kernel that ran out
// of memory also panics.
func (t *task) panicked(n *node, v any) error {
	if err, ok := v.(error); ok {
		if over, ok := errors.AsType[*membudget.Exceeded](err); ok {
			return status.ResourceExhaustedf("OOM when allocating %d bytes of scratch memory on %s by allocator cpu", over.Bytes, t.ctx.Device.Name)
		}
	}
	t.run.p.e.log.Error("kernel panic", "node", n.name, "op", n.op, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return status.Internalf("Kernel of op %s panicked: %v", n.op, v)
}

// done is the callback of an asynchronous kernel. It ignores a second call.
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

// check verifies the outputs of the kernel and completes the statistics.
func (t *task) check() {
	if t.stats != nil {
		t.stats.end()
		t.stats.addOutputs(t)
	}
	t.verify(t.node)
}

// verify checks the error and the outputs of one node, which is that of the task or part of its
// region.
func (t *task) verify(n *node) {
	if t.err != nil {
		t.err = n.explain(t.err)
		return
	}
	if account := t.ctx.Step.Account; account != nil {
		if err := t.charge(account); err != nil {
			t.err = n.explain(err)
			return
		}
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

// charge charges the outputs to an account.
func (t *task) charge(a *membudget.Account) error {
	for i := range t.outs {
		out := &t.outs[i].Tensor
		if !out.Initialized() {
			continue
		}
		if over := membudget.ChargeTensor(out, a); over != nil {
			return status.ResourceExhaustedf("%s", over.Message(int64(len(out.Bytes()))))
		}
	}
	return nil
}

// present reports whether a value is set. A dead output is not.
func present(v *kernel.Value) bool { return v.Tensor.Initialized() || v.Ref != nil }
