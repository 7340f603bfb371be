//go:build !linux

package rpc

import (
	"syscall"
	"time"
)

// setUserTimeout does nothing on this system: a connection ends when TCP gives up.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
