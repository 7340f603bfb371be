package grpch2

import (
	"cmp"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// ConnInfo describes an open connection of a server.
type ConnInfo struct {
	Number    uint64 // in the order of admission, from 1
	Conn      net.Conn
	Calls     CallCounts
	LastReply time.Duration // since then; 0 if there was none
	Active    int           // calls that have not been answered
}

// CallCounts are numbers of calls.
type CallCounts struct{ Started, Succeeded, Failed uint64 }

// callCounters count calls. They may be used concurrently.
type callCounters struct{ started, succeeded, failed atomic.Uint64 }

func (c *callCounters) counts() CallCounts {
	return CallCounts{c.started.Load(), c.succeeded.Load(), c.failed.Load()}
}

func (c *callCounters) end(code uint32) {
	if code == codeOK {
		c.succeeded.Add(1)
	} else {
		c.failed.Add(1)
	}
}

func (c *CallCounts) add(other CallCounts) {
	c.Started += other.Started
	c.Succeeded += other.Succeeded
	c.Failed += other.Failed
}

// Conns describes the open connections, the oldest first.
func (s *Server) Conns() []ConnInfo {
	s.mu.Lock()
	out := make([]ConnInfo, 0, len(s.conns))
	for c := range s.conns {
		info := ConnInfo{Number: c.number, Conn: c.nc, Calls: c.calls.counts(), Active: int(c.activeCalls.Load())}
		if last := c.lastReply.Load(); last != 0 {
			info.LastReply = time.Duration(mono.Nanos() - last)
		}
		out = append(out, info)
	}
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b ConnInfo) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Calls returns the numbers of calls on all connections since the start.
func (s *Server) Calls() CallCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.ended
	for c := range s.conns {
		out.add(c.calls.counts())
	}
	return out
}

// Addrs returns the addresses on which the server listens.
func (s *Server) Addrs() []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]net.Addr, 0, len(s.listeners))
	for l := range s.listeners {
		out = append(out, l.Addr())
	}
	return out
}

// State is the state of a client's connection.
type State int

// States.
const (
	Idle State = iota
	Connecting
	Ready
	Failing // the last attempt to connect has failed
	Closed
)

// ClientInfo describes a client and its connection.
type ClientInfo struct {
	State State
	Conn  net.Conn // nil unless State is Ready
	Err   error    // of the last attempt to connect
	Calls CallCounts
}

// Info describes the client.
func (c *Client) Info() ClientInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := ClientInfo{Err: c.lastErr, Calls: c.calls.counts()}
	switch {
	case c.closed:
		out.State = Closed
	case c.conn != nil:
		out.State, out.Conn = Ready, c.conn.nc
	case c.lastErr != nil:
		out.State = Failing
	case c.connecting != nil:
		out.State = Connecting
	}
	return out
}
