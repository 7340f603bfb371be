// Command weft is one program for all roles of a TensorFlow cluster: server, client and tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// lets the program start, and a task run, with few collections of garbage
	_ "github.com/weft-ml/weft/internal/sys/gctune"
)

// Exit statuses. Managers of clusters restart a task by its status: those below 128 are faults that
// come again.
const (
	exitFault = 1  // it could not do what was asked
	exitUsage = 64 // it was asked wrongly
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := rootFor(os.Args[0]).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft: "+err.Error())
		os.Exit(exitStatus(err))
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitStatus(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFault
}
