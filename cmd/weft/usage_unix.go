//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns how long the process has computed, in its program and for it in the kernel.
// What the Go runtime counts would be too much, up to three times: threads that wait for a core or
// for work count as long as they hold their place in its scheduler.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
