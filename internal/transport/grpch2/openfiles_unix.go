//go:build unix

package grpch2

import "syscall"

// openFileLimit returns how many file descriptors the process may have open, or 0 if that is not
// known.
func openFileLimit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return int(min(r.Cur, 1<<30))
}
