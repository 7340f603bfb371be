package executor

import (
	"unsafe"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// process executes a ready node, or queues it.
func (r *run) process(a activation) {
	n, it := a.node, a.it
	switch {
	case a.dead && n.kind != trigger && !n.transfer:
		r.finish(n, it, true, nil)
	case n.kind == compute:
		r.compute(n, it, a.dead)
	case r.opts.Stats != nil:
		stats := r.newStats(n)
		stats.start()
		r.runBuiltin(n, it)
		stats.end()
		r.opts.Stats.Collect(stats)
	default:
		r.runBuiltin(n, it)
	}
}

// compute calls the kernel of a node, or queues the call if it is expensive.
func (r *run) compute(n *node, it *iteration, dead bool) {
	if n.region != nil {
		r.executed += len(n.region.nodes) - 1
	}
	if n.isExpensive() {
		t := r.taskFor()
		t.prepare(n, it, dead)
		r.enqueue(t)
		return
	}
	t := r.inline
	t.prepare(n, it, dead)
	r.tick++
	finished := false
	if r.tick&sampleMask == 0 {
		// A loop of function calls is many short runs, which never reach pollInterval.
		r.checkDeadline()
		finished = t.executeTimed()
	} else {
		finished = t.execute()
	}
	if !finished {
		r.inFlight++
		r.inline = r.taskFor()
		return
	}
	r.conclude(t)
}

// complete concludes a task that ran outside of the ownership, and recycles it.
func (r *run) complete(t *task) {
	r.inFlight--
	r.conclude(t)
	r.freeTask(t)
}

// taskMemory is about the memory of a task in bytes, with the callback of its kernel.
const taskMemory = int(unsafe.Sizeof(task{})) + 64

// taskFor returns a task for another node that runs outside of the ownership. As many nodes may
// wait as iterations of a loop run at the same time, so memory is asked for. If there is none, the
// run fails.
func (r *run) taskFor() *task {
	if r.tasks == nil && !r.meter.Take(taskMemory) {
		r.fail(status.ResourceExhaustedf("There is not enough memory for another node of the step (--memory-limit)."))
	}
	return r.newTask()
}

// conclude records the error of a finished task and finishes its node.
func (r *run) conclude(t *task) {
	if t.stats != nil {
		r.opts.Stats.Collect(t.stats)
		t.stats = nil
	}
	if t.err != nil {
		r.fail(status.From(t.err))
		t.err = nil
	}
	if t.ctx.Dead {
		release(t.outs)
	}
	r.finish(t.node, t.it, t.dead, t.outs)
}

// finish ends the execution of a node. It delivers the outputs and releases those without
// consumers, and it releases the inputs. outs may be the input slots. In a run that has failed it
// delivers nothing.
func (r *run) finish(n *node, it *iteration, dead bool, outs []kernel.Value) {
	if r.err != nil {
		release(outs)
		release(it.inputs(n))
		return
	}
	switch n.kind {
	case enter:
		r.enterFrame(n, it, dead, outs)
	case exit:
		r.leaveFrame(n, it, dead, outs)
	case next:
		if !dead { // dead values do not start an iteration
			r.nextIteration(n, it, outs)
		}
	default:
		r.propagate(n, it, dead, outs)
	}
	release(outs)
	release(it.inputs(n))
	it.executed++
	if it.running--; it.running == 0 && it.frame.parent != nil && r.err == nil {
		r.retire(it.frame)
	}
}

func release(values []kernel.Value) {
	for i := range values {
		if v := &values[i]; present(v) {
			v.Release()
		}
	}
}
