//go:build unix

// Package openfiles tells how many file descriptors the process may have open, and how many it has.
package openfiles

import "syscall"

// Limit returns how many file descriptors the process may have open, or 0 if that is not known.
func Limit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return int(min(r.Cur, 1<<30))
}

// Full reports whether a part of the limit, as a number of descriptors, is open.
func Full(most int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err == syscall.EMFILE
	}
	_ = syscall.Close(fd)
	return fd >= most // a new descriptor has the lowest number that is free
}
