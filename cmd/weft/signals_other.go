//go:build !unix

package main

// reloadOnHangUp has no effect: the system has no SIGHUP.
func reloadOnHangUp(func()) (stop func()) { return func() {} }

// reopenOnUser1 has no effect: the system has no SIGUSR1.
func reopenOnUser1(func()) (stop func()) { return func() {} }
