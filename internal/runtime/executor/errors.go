package executor

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/status"
)

// hint is the text that TensorFlow appends to the error of a failed allocation. Clients match it.
const hint = "\nHint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom " +
	"to RunOptions for current allocation info. This isn't available when running in Eager mode.\n"

// maxErrorLen bounds the text of an error from within many calls of functions.
const maxErrorLen = 1 << 12

// attach adds the name of the node to its error. An error that names a node already came out of a
// function that the node called.
func (n *node) attach(err error) *status.Error {
	e := status.From(err)
	switch {
	case !strings.Contains(e.Message, "{{node "):
		return status.AtNode(e, n.name)
	case len(e.Message) < maxErrorLen:
		return e.Annotate("\n\t [[%s]]", n.name)
	}
	return e
}

// explain adds to the error of a node's kernel what its caller should know.
func (n *node) explain(err error) error {
	e := n.attach(err)
	switch {
	case e.Code == status.Unavailable && !n.distributed:
		// A client takes Unavailable for a lost task, and starts over.
		e = e.Annotate("\nExecuting non-communication op <%s> originally returned UnavailableError, and was replaced by "+
			"InternalError to avoid invoking TF network error handling logic.", n.name)
		e.Code = status.Internal
	case failedAllocation(e) && !strings.Contains(e.Message, hint):
		e = e.Annotate("%s", hint)
	}
	return e
}

// failedAllocation reports whether an error says that memory ran out. Other resources, such as disk
// space, have the same code, and the hint would mislead there.
func failedAllocation(e *status.Error) bool {
	return e.Code == status.ResourceExhausted && strings.Contains(e.Message, "OOM")
}

// fail ends the run with its first error: nothing more is started, and the rest of the step is
// cancelled.
func (r *run) fail(err *status.Error) {
	if r.err != nil {
		return
	}
	if r.isConsequence(err) {
		err = err.Derive()
	}
	r.err = err
	clear(r.ready)
	r.ready = r.ready[:0]
	for t := r.queue.takeOldest(); t != nil; t = r.queue.takeOldest() {
		r.inFlight--
		r.freeTask(t)
	}
	if r.step.Cancel != nil {
		r.step.Cancel(err.Derive()) // for whoever fails because of it
	}
}

// follows reports whether an error is only the consequence of the step's cancellation.
func (r *run) isConsequence(err *status.Error) bool {
	cause := context.Cause(r.step.Context)
	if cause == nil || err.Code != status.Cancelled && err.Code != status.Aborted {
		return false
	}
	// The error of a function that the run called has cancelled the step itself.
	return !status.IsDerived(cause) || !strings.HasPrefix(err.Message, cause.Error())
}
