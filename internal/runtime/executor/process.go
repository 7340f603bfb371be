package executor

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// process executes a node that is ready, or has it executed.
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

// compute calls the kernel of a node, or has it called.
func (r *run) compute(n *node, it *iteration, dead bool) {
	if n.isExpensive() {
		t := r.newTask()
		t.prepare(n, it, dead)
		r.enqueue(t)
		return
	}
	t := r.inline
	t.prepare(n, it, dead)
	r.tick++
	finished := false
	if r.tick&sampleMask == 0 {
		r.checkDeadline() // loops of function calls are many short runs
		finished = t.executeTimed()
	} else {
		finished = t.execute()
	}
	if !finished {
		r.inFlight++
		r.inline = r.newTask()
		return
	}
	r.conclude(t)
}

// complete takes note of a task that ran elsewhere.
func (r *run) complete(t *task) {
	r.inFlight--
	r.conclude(t)
	r.freeTask(t)
}

// conclude delivers what a finished task has made.
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

// finish ends the execution of a node: its outputs are delivered, and what nobody took is released,
// with its inputs. outs may be the inputs. In a run that has failed nothing is delivered any more.
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
		if !dead { // the deadness of a loop ends here
			r.nextIteration(n, it, outs)
		}
	default:
		r.propagate(n, it, dead, outs)
	}
	release(outs)
	release(it.inputs(n))
	it.executed++
	if it.running--; it.running == 0 && it.frame.parent != nil {
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
