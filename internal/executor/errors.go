package executor

import (
	"github.com/weft-ml/weft/status"
)

// explain adds to the error of a node's kernel what its caller should know.
func (n *node) explain(err error) error {
	e := status.From(err)
	switch {
	case e.Code == status.Unavailable && !n.peers:
		// A client takes Unavailable for a lost task, and starts over.
		e = e.Annotate("\nExecuting non-communication op <%s> originally returned UnavailableError, and was replaced by "+
			"InternalError to avoid invoking TF network error handling logic.", n.name)
		e.Code = status.Internal
	case e.Code == status.ResourceExhausted:
		e = status.AtNode(e, n.name).Annotate("\nHint: If you want to see a list of allocated tensors when OOM happens, add " +
			"report_tensor_allocations_upon_oom to RunOptions for current allocation info. This isn't available when running in " +
			"Eager mode.\n")
	}
	return e
}

// failNode fails the run because of a node.
func (r *run) failNode(n *node, err error) {
	if r.err == nil {
		r.fail(status.AtNode(err, n.name))
	}
}

// fail ends the run with its first error: nothing more is started, and the rest of the step is cancelled.
func (r *run) fail(err *status.Error) {
	if r.err != nil {
		return
	}
	if r.step.Context.Err() != nil && (err.Code == status.Cancelled || err.Code == status.Aborted) {
		err = err.Derive() // the cause is elsewhere
	}
	r.err = err
	clear(r.ready)
	r.ready = r.ready[:0]
	for t := r.jobs.take(); t != nil; t = r.jobs.take() {
		r.underWay--
		r.freeTask(t)
	}
	if r.step.Cancel != nil {
		r.step.Cancel(err)
	}
}
