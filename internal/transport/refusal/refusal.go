// Package refusal tells clients why their connections are refused.
package refusal

import (
	"net"
	"sync"
	"time"
)

const (
	// timeout bounds the time in which a client receives the reason.
	timeout = time.Second
	// most bounds the connections that are being refused at the same time. Others are closed
	// without a reason.
	most = 64
)

// Set holds the connections that are being refused. It may be used concurrently. The zero Set has
// none.
type Set struct {
	running sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

// Refuse sends a client a text and closes the connection. It does not wait.
func (s *Set) Refuse(nc net.Conn, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= most {
		nc.Close()
		return
	}
	if s.conns == nil {
		s.conns = map[net.Conn]struct{}{}
	}
	s.conns[nc] = struct{}{}
	s.running.Go(func() {
		_ = nc.SetDeadline(time.Now().Add(timeout)) // the following calls report the error
		if _, err := nc.Write(text); err == nil {
			// data that is not read would discard what was written
			_, _ = nc.Read(make([]byte, 512))
		}
		nc.Close()
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	})
}

// Close closes the connections that are being refused, and waits until none is left. Later ones are
// closed without a reason.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	for nc := range s.conns {
		nc.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
