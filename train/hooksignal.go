package train

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// SignalHook ends training after the running step when the process receives a signal, such as the
// SIGTERM that cluster managers send some time before they end a process. The last checkpoint of a
// [CheckpointSaverHook] is then that of the last step. A second signal ends the process at once.
//
// Its methods must not be called concurrently, except by the session that has the hook.
type SignalHook struct {
	BaseHook
	incoming chan os.Signal
	received os.Signal // nil before the first signal
}

// NewSignalHook returns a hook that waits for the given signals from now on, or for SIGTERM if none
// are given. [SignalHook.End], which sessions call, ends the wait.
func NewSignalHook(signals ...os.Signal) *SignalHook {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGTERM}
	}
	h := &SignalHook{incoming: make(chan os.Signal, 1)}
	signal.Notify(h.incoming, signals...)
	return h
}

// Stopped reports whether a signal has come. Loops without a [MonitoredSession] ask it.
func (h *SignalHook) Stopped() bool {
	select {
	case h.received = <-h.incoming:
		signal.Stop(h.incoming) // the next signal has its usual effect
	default:
	}
	return h.received != nil
}

// Err returns a [*SignalError] if a signal has come, else nil.
func (h *SignalHook) Err() error {
	if !h.Stopped() {
		return nil
	}
	return &SignalError{h.received}
}

// AfterRun implements [SessionRunHook].
func (h *SignalHook) AfterRun(_ context.Context, run *RunContext, _ RunValues) error {
	if h.Stopped() {
		run.RequestStop()
	}
	return nil
}

// End implements [SessionRunHook].
func (h *SignalHook) End(context.Context, Session) error {
	signal.Stop(h.incoming)
	return nil
}

// SignalError says that a signal has ended training.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string {
	return fmt.Sprintf("training was ended by a signal: %v", e.Signal)
}

// ExitStatus returns the status with which the process should end: 128 and the number of the
// signal. Cluster managers then start the process again.
func (e *SignalError) ExitStatus() int {
	n, _ := e.Signal.(syscall.Signal)
	return 128 + int(n)
}
