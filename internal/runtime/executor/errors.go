package executor

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// hint is the text that TensorFlow adds when memory runs out. Clients search for it.
const hint = "\nHint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom " +
	"to RunOptions for current allocation info. This isn't available when running in Eager mode.\n"

// maxErrorLen is the length in bytes from which no more node names are added to an error. It bounds
// errors from deeply nested function calls.
const maxErrorLen = 1 << 12

// attach adds the name of the node to its error. If the error names a node already, it comes from a
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

// explain returns the error of a node's kernel with the notes that TensorFlow adds for clients.
func (n *node) explain(err error) error {
	e := n.attach(err)
	switch {
	case e.Code == status.Unavailable && !n.distributed:
		// Clients interpret Unavailable as a lost task and start over.
		e = e.Annotate("\nExecuting non-communication op <%s> originally returned UnavailableError, and was replaced by "+
			"InternalError to avoid invoking TF network error handling logic.", n.name)
		e.Code = status.Internal
	case failedAllocation(e) && !strings.Contains(e.Message, hint):
		onHost := !strings.Contains(e.Message, "by allocator GPU_")
		if limit := membudget.Limit(); limit > 0 && onHost && !strings.Contains(e.Message, "-memory)") {
			e = e.Annotate("\nThe memory of the process is limited to %d MiB (--memory-limit).", limit>>20)
		}
		e = e.Annotate("%s", hint)
	}
	return e
}

// failedAllocation reports whether an error says that memory ran out. Other resources, such as disk
// space, have the same code, and the hint would mislead there.
func failedAllocation(e *status.Error) bool {
	return e.Code == status.ResourceExhausted && strings.Contains(e.Message, "OOM")
}

// fail records the first error of the run. No further node is started, queued tasks are dropped,
// and the rest of the step is cancelled.
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
		r.step.Cancel(err.Derive()) // derived: other nodes fail because of it
	}
}

// isConsequence reports whether an error only follows from the step's cancellation.
func (r *run) isConsequence(err *status.Error) bool {
	cause := context.Cause(r.step.Context)
	if cause == nil || err.Code != status.Cancelled && err.Code != status.Aborted {
		return false
	}
	// An error of a called function has cancelled the step itself. It is not a consequence.
	return !status.IsDerived(cause) || !strings.HasPrefix(err.Message, cause.Error())
}
