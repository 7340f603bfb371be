//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reloadOnHangUp calls a function at each SIGHUP, until stop is called.
func reloadOnHangUp(reload func()) (stop func()) { return onSignal(syscall.SIGHUP, reload) }

// reopenOnUser1 calls a function at each SIGUSR1, until stop is called.
func reopenOnUser1(reopen func()) (stop func()) { return onSignal(syscall.SIGUSR1, reopen) }

func onSignal(s os.Signal, f func()) (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range c {
			f()
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
		<-done
	}
}
