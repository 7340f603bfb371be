//go:build unix

package fileio

import (
	"os"
	"syscall"
)

const canLock = true

// lock takes the lock of an open file, which ends when the file is closed or the process dies, and
// reports whether it did.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
