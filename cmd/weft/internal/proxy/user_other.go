//go:build !linux

package proxy

import (
	"errors"
	"net"
)

// CanLookUp reports whether the system tells the user of a connection.
const CanLookUp = false

// UserOf returns the user at the other end of a connection from this machine.
func UserOf(net.Conn) (uint32, error) {
	return 0, errors.New("this system does not tell the user of a connection")
}
