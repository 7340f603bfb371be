package grpch2

import (
	"sync"
	"time"
)

const (
	// maxHands bounds the goroutines that wait for calls to serve.
	maxHands  = 16
	handsRest = time.Second
)

// hands are goroutines that serve calls, each one after the other. A new goroutine would have to
// grow its stack, which calls need deep, by copying it several times.
type hands struct {
	rest time.Duration // for how long none of them must have been needed before they end

	mu sync.Mutex
	// guarded by mu; who waits for the next call, the last to become idle at the end
	idle  []chan work
	taken int         // guarded by mu; how often one was needed
	seen  int         // guarded by mu; how often it was at the last tick
	clock *time.Timer // guarded by mu; nil while nobody waits
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
	h.taken++
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
	if h.clock == nil {
		h.clock = time.AfterFunc(h.rest, h.tick)
	}
	return true
}

// tick lets those who wait go if nobody was needed since the last one.
func (h *hands) tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
	case h.taken != h.seen:
		h.seen = h.taken
		h.clock.Reset(h.rest)
	default:
		h.clock = nil
		h.dismissLocked()
	}
}

// end lets nobody wait any more.
func (h *hands) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.clock != nil {
		h.clock.Stop()
	}
	h.dismissLocked()
}

func (h *hands) dismissLocked() {
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}
