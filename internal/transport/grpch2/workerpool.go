package grpch2

import (
	"sync"
	"time"
)

const (
	// maxIdleWorkers bounds the idle goroutines, because each keeps a grown stack.
	maxIdleWorkers = 16
	// idleTimeout is how long the pool may stay unused before its goroutines end.
	idleTimeout = time.Second
)

// A workerPool keeps goroutines for calls that the reader of a connection does not serve itself.
//
// The simple design starts a goroutine per call. Each one pays for growing its stack, which is
// copied three or four times on the way: 4 to 5% of all samples, in training more than the
// optimizer. The pool hands a call to the goroutine that became idle last, whose stack is in the
// cache. If none is idle, the call gets a new goroutine, so a call never waits for another one.
type workerPool struct {
	timeout time.Duration // idleTimeout, except in tests

	mu sync.Mutex
	// inputs of the idle goroutines, most recently used last; guarded by mu
	idle       []chan job
	uses       int         // calls that found an idle goroutine; guarded by mu
	usesAtTick int         // uses at the last tick; guarded by mu
	timer      *time.Timer // calls tick; nil while no goroutine is idle; guarded by mu
	closed     bool        // guarded by mu
}

// A job is a call to be served by a worker.
type job struct {
	call       *Call
	compressed bool
}

// dispatch serves a call on an idle goroutine of the pool, or on a new one.
func (s *Server) dispatch(j job) {
	if next := s.workers.take(); next != nil {
		next <- j
		return
	}
	s.running.Go(func() { s.runWorker(j) })
}

// runWorker serves a call and then those that the pool passes to it, until the pool dismisses it.
func (s *Server) runWorker(j job) {
	next := make(chan job, 1)
	for more := true; more; j, more = <-next {
		j.call.conn.serve(j.call, j.compressed)
		j = job{}
		if !s.workers.park(next) {
			return
		}
	}
}

// take removes an idle goroutine from the pool and returns its input, or nil if there is none.
func (p *workerPool) take() chan job {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	next := p.idle[last]
	p.idle = p.idle[:last]
	p.uses++
	return next
}

// park adds a goroutine that reads jobs from next. It reports false if the pool is full or closed;
// the goroutine must then end.
func (p *workerPool) park(next chan job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == maxIdleWorkers {
		return false
	}
	p.idle = append(p.idle, next)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.tick)
	}
	return true
}

// tick dismisses the idle goroutines if none was used since the last tick.
func (p *workerPool) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.uses != p.usesAtTick:
		p.usesAtTick = p.uses
		p.timer.Reset(p.timeout)
	default:
		p.timer = nil
		p.releaseIdleLocked()
	}
}

// close dismisses the idle goroutines and lets no others become idle.
func (p *workerPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.releaseIdleLocked()
}

func (p *workerPool) releaseIdleLocked() {
	for _, next := range p.idle {
		close(next)
	}
	p.idle = nil
}
