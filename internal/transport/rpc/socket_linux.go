package rpc

import (
	"syscall"
	"time"
)

const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT of linux/tcp.h

// limitSilence makes the kernel give a connection up when what was sent has not been acknowledged
// for so long. TCP alone would try for a quarter of an hour.
func limitSilence(conn syscall.RawConn, d time.Duration) error {
	var err error
	if e := conn.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}
