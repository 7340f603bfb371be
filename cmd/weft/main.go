// Command weft is one program for all roles of a TensorFlow cluster: server, client and tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// Sets the garbage collector's goal for a small heap.
	_ "github.com/weft-ml/weft/internal/sys/gctune"
)

// Exit statuses. Cluster managers decide by the status whether to restart a task: a status below
// 128 means an error that a restart does not fix.
const (
	exitFault  = 1  // the command failed
	exitUsage  = 64 // the command line is wrong
	exitConfig = 78 // certificates or addresses do not allow a secure start
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the program
	err := rootFor(os.Args[0], os.Args[1:]).ExecuteContext(ctx)
	stop()
	if err != nil {
		if _, reported := errors.AsType[exitError](err); !reported {
			fmt.Fprintln(os.Stderr, "weft: "+err.Error())
		}
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
	return exitFault
}
