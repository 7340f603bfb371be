package grpch2

import (
	"context"
	"net"
	"testing"
	"time"
)

// A client that was idle for too long makes its next call over a new connection, although it has
// not read the GOAWAY before.
func TestCallAfterIdleTimeout(t *testing.T) {
	s, l := newServer(map[string]func(*Call){"/s/Echo": echo})
	s.Limits.Idle = 30 * time.Millisecond
	startServer(t, s, l)
	c := NewClient("x", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
	defer c.Close()
	for range 3 {
		resp := c.Call(t.Context(), &Request{Path: "/s/Echo", Data: [][]byte{{'x'}}, NewBody: chunks})
		if resp.Code != codeOK {
			t.Fatalf("got %+v", resp)
		}
		for connections(s) > 0 { // ended by the sweep
			<-time.After(time.Millisecond)
		}
	}
	if s.Limited()["idle"] < 3 {
		t.Errorf("counted %d times", s.Limited()["idle"])
	}
}

func connections(s *Server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
