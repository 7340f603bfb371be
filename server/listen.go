package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// listen returns the listener of the task of def. It replaces port 0 in def by the port of the
// listener.
func listen(def *cluster.ServerDef, o *options) (net.Listener, error) {
	self := def.Self()
	known := def.Cluster.Address(self)
	host, port, err := net.SplitHostPort(known)
	if err != nil {
		return nil, status.InvalidArgumentf("Could not interpret \"%s\" as a host-port pair.", known)
	}
	l := o.listener
	if l == nil {
		address := o.listen
		if address == "" {
			if warning := loopbackOnly(def, host, net.LookupIP); warning != "" {
				o.log.Warn("other machines may not reach this task", "address", known, "why", warning)
			}
			bind := port
			if def.Port != 0 {
				bind = strconv.Itoa(def.Port)
			}
			address = net.JoinHostPort(host, bind)
		}
		if l, err = open(address, self, o.insecure || o.tls != nil); err != nil {
			return nil, err
		}
	}
	if port == "0" {
		_, got, _ := net.SplitHostPort(l.Addr().String())
		def.Cluster[def.Job][def.Task] = net.JoinHostPort(host, got)
	}
	return l, nil
}

// loopbackOnly returns a warning if the host of a task resolves to loopback addresses only,
// although the cluster has tasks on other hosts. Many machines map their own name to 127.0.1.1.
func loopbackOnly(def *cluster.ServerDef, host string, lookup func(host string) ([]net.IP, error)) string {
	elsewhere := slices.IndexFunc(def.Cluster.Tasks(), func(t cluster.Task) bool {
		peer, _, err := net.SplitHostPort(def.Cluster.Address(t))
		return err == nil && peer != host && !isLoopback(peer)
	})
	if elsewhere < 0 {
		return ""
	}
	ips, err := lookup(host)
	if err != nil || len(ips) == 0 || slices.ContainsFunc(ips, func(ip net.IP) bool { return !ip.IsLoopback() }) {
		return ""
	}
	return fmt.Sprintf("%s is %v on this machine, which other machines cannot reach; name another host in the cluster, "+
		"or another address to listen on", host, ips[0])
}

// isLoopback reports whether a host is written as a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isLoopbackAddr reports whether only processes on this machine can connect to an address.
func isLoopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// open listens on an address. An address that other machines can reach needs insecure. Errors say
// what is wrong and what to do.
func open(address string, self cluster.Task, insecure bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, status.InvalidArgumentf("cannot listen on %s for %v: %w", address, self, err)
	}
	if !insecure && !tcp.IP.IsLoopback() {
		return nil, status.FailedPreconditionf("%s can be reached from other machines, and a client of a server can run "+
			"anything on it: that must be allowed explicitly", address)
	}
	l, err := rpc.Listen(tcp)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, status.AlreadyExistsf("cannot listen on %s for %v: the port is in use by another process", address, self)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, status.FailedPreconditionf("cannot listen on %s for %v: it is not an address of this machine; "+
			"say which address to listen on instead", address, self)
	case errors.Is(err, syscall.EACCES):
		return nil, status.Errorf(status.PermissionDenied, "cannot listen on %s for %v: the port needs privileges", address, self)
	}
	return nil, status.Unavailablef("cannot listen on %s for %v: %w", address, self, err)
}
