package rpc

import (
	"syscall"
	"time"
)

const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT of linux/tcp.h

// setUserTimeout makes the kernel close a connection when sent data stays unacknowledged for d. By
// default, TCP retries for a quarter of an hour.
func setUserTimeout(conn syscall.RawConn, d time.Duration) error {
	var err error
	if e := conn.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}
