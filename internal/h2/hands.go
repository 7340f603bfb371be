package h2

import "sync"

// maxHands bounds the goroutines that wait for calls to serve.
const maxHands = 16

// hands are goroutines that serve calls, each one after the other. A new goroutine would have to grow its stack, which calls
// need deep, by copying it several times.
type hands struct {
	mu    sync.Mutex
	idle  []chan work // guarded by mu; who waits for the next call, the last to become idle at the end
	ended bool        // guarded by mu
}

// work is a call to be served.
type work struct {
	call       *Call
	compressed bool
}

// serve has a call served by a goroutine that waits, or else by a new one.
func (s *Server) serve(w work) {
	if next := s.hands.take(); next != nil {
		next <- w
		return
	}
	s.running.Go(func() { s.serveAll(w) })
}

// serveAll serves calls until there is no need to wait for more.
func (s *Server) serveAll(w work) {
	next := make(chan work, 1)
	for more := true; more; w, more = <-next {
		w.call.conn.serve(w.call, w.compressed)
		w = work{}
		if !s.hands.wait(next) {
			return
		}
	}
}

// take returns where a goroutine waits for a call, or nil.
func (h *hands) take() chan work {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.idle) - 1
	if last < 0 {
		return nil
	}
	next := h.idle[last]
	h.idle = h.idle[:last]
	return next
}

// wait adds a goroutine that wants to serve what comes on next, unless enough do.
func (h *hands) wait(next chan work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || len(h.idle) == maxHands {
		return false
	}
	h.idle = append(h.idle, next)
	return true
}

// end lets nobody wait any more.
func (h *hands) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}
