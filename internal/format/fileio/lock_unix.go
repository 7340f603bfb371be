//go:build unix

package fileio

import (
	"os"
	"syscall"
)

const canLock = true

// lock locks an open file and reports whether it succeeded. The lock ends when the file is closed
// or the process dies.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
