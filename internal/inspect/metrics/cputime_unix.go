//go:build unix

package metrics

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, user and system. The Go runtime's own count is up to
// three times too large: it includes threads that wait for a core or for work.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
