// Command weft is one program for all roles of a TensorFlow cluster: server, client and tools.
package main

import (
	"errors"
	"fmt"
	"os"

	// Registers the drivers of GPUs in programs that are built with them.
	_ "github.com/weft-ml/weft/internal/gpu/drivers"
	// Sets the garbage collector's goal for a small heap.
	_ "github.com/weft-ml/weft/internal/sys/gctune"
	"github.com/weft-ml/weft/internal/sys/onefile"
	"github.com/weft-ml/weft/status"
)

func main() {
	_ = onefile.Reload() // without a loader there are no GPU devices
	ctx, signals := watchSignals()
	err := rootFor(os.Args[0], os.Args[1:]).ExecuteContext(ctx)
	number := signals.stop()
	if err != nil {
		if _, reported := errors.AsType[exitError](err); !reported {
			fmt.Fprintln(os.Stderr, "weft: "+err.Error())
		}
	}
	switch {
	case number > 0:
		os.Exit(exitSignal + number)
	case err != nil:
		os.Exit(exitStatus(err))
	}
}

// exitError is an exit status whose reason has been printed.
type exitError struct{ status int }

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// configError is an error in certificates, or in what is open to others.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// outputError is an error in writing a file that the command line names.
type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

func exitStatus(err error) int {
	if e, ok := errors.AsType[exitError](err); ok {
		return e.status
	}
	if _, ok := errors.AsType[configError](err); ok {
		return exitConfig
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[outputError](err); ok {
		return exitCreate
	}
	switch status.CodeOf(err) { //nolint:exhaustive // the others are faults
	case status.DataLoss:
		return exitData
	case status.PermissionDenied, status.Unauthenticated:
		return exitAccess
	case status.Unavailable:
		return exitPeer
	}
	return exitFault
}
