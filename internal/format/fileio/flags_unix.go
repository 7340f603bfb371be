//go:build unix

package fileio

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Flags of open that not all systems have.
const (
	openNonblock  = unix.O_NONBLOCK | unix.O_NOCTTY
	openNoFollow  = unix.O_NOFOLLOW
	openDirectory = unix.O_DIRECTORY
)

// canWait reports whether the runtime can wait for a file.
func canWait(f *os.File) bool { return f.SetReadDeadline(time.Time{}) == nil }

// readNow reads without waiting: a file that has nothing to read is an error, like
// "Resource temporarily unavailable".
func readNow(f *os.File, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, failed = unix.Read(int(fd), b) //nolint:gosec // a descriptor
			if !errors.Is(failed, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, failed
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
