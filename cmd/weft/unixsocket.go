package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// errSocketInUse is the error for a socket on which a process listens.
var errSocketInUse = fmt.Errorf("another process listens there: %w", syscall.EADDRINUSE)

// listenUnix listens on a Unix socket. It replaces one that a process has left when it was killed.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errSocketInUse
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return net.Listen("unix", path)
}
