package server

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// listen listens for the task that def names, and writes the port that it got into def.
func listen(def *cluster.ServerDef, o *options) (net.Listener, error) {
	self := def.Self()
	known := def.Cluster.Address(self)
	host, port, err := net.SplitHostPort(known)
	if err != nil {
		return nil, status.InvalidArgumentf("Could not interpret \"%s\" as a host-port pair.", known)
	}
	address := o.listen
	if address == "" {
		bind := port
		if def.Port != 0 {
			bind = strconv.Itoa(def.Port)
		}
		address = net.JoinHostPort(host, bind)
	}
	if err := checkReach(address, o.insecure); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(self, address, err)
	}
	if port == "0" {
		_, got, _ := net.SplitHostPort(l.Addr().String())
		def.Cluster[def.Job][def.Task] = net.JoinHostPort(host, got)
	}
	return l, nil
}

// checkReach refuses addresses that others than this machine can reach, unless that is wanted.
func checkReach(address string, insecure bool) error {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return status.InvalidArgumentf("cannot listen on %s: %w", address, err)
	}
	if insecure || tcp.IP.IsLoopback() {
		return nil
	}
	return status.FailedPreconditionf("%s can be reached from other machines, and whoever reaches a server can run anything on it: "+
		"listening there must be allowed explicitly, as insecure", address)
}

// listenError says what is wrong with an address and what to do about it.
func listenError(self cluster.Task, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return status.AlreadyExistsf("cannot listen on %s for %v: the port is in use by another process", address, self)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return status.FailedPreconditionf("cannot listen on %s for %v: it is not an address of this machine; "+
			"say which address to listen on instead", address, self)
	case errors.Is(err, syscall.EACCES):
		return status.Errorf(status.PermissionDenied, "cannot listen on %s for %v: the port needs privileges", address, self)
	}
	return status.Unavailablef("cannot listen on %s for %v: %w", address, self, err)
}
