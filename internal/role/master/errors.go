package master

import (
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// fromTask adds the name of the task that an error comes from.
func fromTask(task cluster.Task, err error) error {
	e := *status.From(err)
	e.Message = "From " + task.String() + ":\n" + e.Message
	return &e
}

// Reasons for the end of a session, as its running steps report them.
var (
	closedByClient = status.Cancelledf("Step was cancelled by an explicit call to `Session::Close()`.")
	// closedByOperator is not from TensorFlow, which has no such call.
	closedByOperator = status.Cancelledf("Step was cancelled because an operator closed its session.")
	closedByGC       = status.Cancelledf("Step was cancelled because the session was garbage collected due to inactivity.")
)

var (
	errClosed  = status.FailedPreconditionf("Session is closed.")
	errTimeout = status.DeadlineExceededf("Operation timed out.")
)
