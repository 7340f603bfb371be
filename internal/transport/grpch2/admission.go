package grpch2

import (
	"net"
	"net/netip"

	"github.com/weft-ml/weft/internal/sys/openfiles"
)

// taskShare is the part of the process's file descriptors that only tasks may use.
const taskShare = 8

// remoteIP returns the IP address of a client, or the zero Addr.
func remoteIP(nc net.Conn) netip.Addr {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// admit decides whether a connection is served. At a limit, clients are refused. A connection from
// an address of the cluster always gets in, because it may be that of a task; it ends the
// connection that has been idle for longest and that no task has used, if there is one.
func (s *Server) admit(nc net.Conn) bool {
	ip := remoteIP(nc)
	s.mu.Lock()
	l, most, what := s.reachedLimit(ip)
	s.mu.Unlock()
	if what == "" {
		return true
	}
	if s.IsTaskAddress != nil && s.IsTaskAddress(ip) {
		s.evict(l, what, most)
		return true
	}
	s.hit(l)
	s.refusals.Refuse(nc, Refusal(l.text(what, most)))
	return false
}

// reachedLimit returns the limit that one more connection from an address would exceed, with its
// value and a text, which is "" if there is none. The caller holds mu.
func (s *Server) reachedLimit(ip netip.Addr) (l Limit, most int, what string) {
	return s.Limits.reached(len(s.conns), s.byAddress[ip], 1)
}

// reached returns the limit that one more connection would exceed if open ones exist, and ofAddress
// from its address. Each takes the given number of file descriptors.
func (l *Limits) reached(open, ofAddress, descriptors int) (limit Limit, most int, what string) {
	most = l.Connections
	if most > 0 {
		if files := openfiles.Limit(); files > 0 {
			most = min(most, (files-files/taskShare)/descriptors)
		}
	}
	switch {
	case most > 0 && open >= most:
		return LimitConnections, most, "too many connections"
	case l.AddressConnections > 0 && ofAddress >= l.AddressConnections:
		return LimitAddressConnections, l.AddressConnections, "too many connections from this address"
	}
	return 0, 0, ""
}

// RefuseConnection returns why one more connection must be refused if open ones exist, and
// ofAddress from its address; "" if it need not. Each takes the given number of file descriptors.
func (l *Limits) RefuseConnection(open, ofAddress, descriptors int) (limit Limit, why string) {
	limit, most, what := l.reached(open, ofAddress, descriptors)
	if what == "" {
		return 0, ""
	}
	return limit, limit.text(what, most)
}

// Refusal returns what a server sends first on a connection that it refuses.
func Refusal(why string) []byte {
	return append(appendOwnSettings(nil, true, 0), goAway(0, codeEnhanceYourCalm, why)...)
}

// admitName counts a connection for its client, whose certificate has proved its name. It returns
// an error if the client has too many.
func (s *Server) admitName(c *serverConn) error {
	if s.NameOf == nil {
		return nil
	}
	name := s.NameOf(c.nc)
	if name == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.Limits.NameConnections; most > 0 && s.byName[name] >= most {
		s.hit(LimitNameConnections)
		return &connError{codeEnhanceYourCalm, LimitNameConnections.text("too many connections of "+name, most)}
	}
	s.byName[name]++
	c.name = name
	return nil
}

// evict ends the connection that has been idle for longest and that no task has used. Connections
// without any call come first: many of them, opened within one sweep, must not end the connection
// of a client that pauses between two calls.
func (s *Server) evict(l Limit, what string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *serverConn
	idle, used := -1, true
	for c := range s.conns {
		c.out.mu.Lock()
		first := used && !c.used.Load()
		older := c.watch.idle > idle || c.watch.idle == idle && oldest != nil && c.number < oldest.number
		if (first || older && used == c.used.Load()) && len(c.streams) == 0 && !c.task.Load() && !c.evicted {
			oldest, idle, used = c, c.watch.idle, c.used.Load()
		}
		c.out.mu.Unlock()
	}
	if oldest != nil {
		oldest.evicted = true
		oldest.cut(l, what, most)
	}
}
