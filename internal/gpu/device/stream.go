package device

import (
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// stream is a queue of the device, with the callbacks that are due.
type stream struct {
	d *Device

	mu      sync.Mutex // held while work is queued, which one goroutine may do at a time
	s       driver.Stream
	pending []callback     // guarded by mu; oldest first
	running bool           // guarded by mu; the goroutine of run exists
	closed  bool           // guarded by mu
	idle    sync.WaitGroup // the goroutine of run
}

// callback is a function that is called when the stream has reached an event.
type callback struct {
	event driver.Event
	f     func(error)
}

func newStream(d *Device) (*stream, error) {
	s, err := d.dev.NewStream()
	if err != nil {
		return nil, d.check(err)
	}
	return &stream{d: d, s: s}, nil
}

// queue calls f to queue work. If then is not nil, it is called when that work is done, on the
// goroutine of the stream, unless queue returns an error.
func (s *stream) queue(f func(driver.Stream) error, then func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queueLocked(f, then)
}

func (s *stream) queueLocked(f func(driver.Stream) error, then func(error)) error {
	if err := s.d.Err(); err != nil {
		return err
	}
	if s.closed {
		return s.d.closedError()
	}
	if err := f(s.s); err != nil {
		return s.d.check(err)
	}
	if then == nil {
		return nil
	}
	event, err := s.s.Record(false)
	if err != nil {
		return s.d.check(err)
	}
	s.pending = append(s.pending, callback{event, then})
	if !s.running {
		s.running = true
		s.idle.Add(1)
		go s.run()
	}
	return nil
}

// mark returns an event at the end of the work that has been queued. The caller closes it.
func (s *stream) mark() (driver.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.d.closedError()
	}
	e, err := s.s.Record(false)
	return e, s.d.check(err)
}

// waitForLocked makes later work of the stream wait for all work that another stream has.
func (s *stream) waitForLocked(other *stream) error {
	e, err := other.mark()
	if err != nil {
		return err
	}
	defer e.Close()
	return s.d.check(s.s.Wait(e))
}

// drain waits for the work of the stream, but not for the callbacks.
func (s *stream) drain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d.check(s.s.Sync())
}

// pollTime is how long the goroutine of a stream asks for the next event before it lets the driver
// wait for it. Waking a thread takes about as long as most copies.
const pollTime = 50 * time.Microsecond

// run calls the callbacks of events that are done, until none is left.
func (s *stream) run() {
	defer s.idle.Done()
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.pending = nil
			s.running = false
			s.mu.Unlock()
			return
		}
		next := s.pending[0]
		s.pending[0] = callback{}
		s.pending = s.pending[1:]
		s.mu.Unlock()
		err := await(next.event)
		next.event.Close()
		next.f(s.d.check(err))
	}
}

// await waits for an event.
func await(e driver.Event) error {
	for start := time.Now(); time.Since(start) < pollTime; {
		if done, err := e.Done(); done || err != nil {
			return err
		}
	}
	return e.Sync()
}

// close waits for the work of the stream and its callbacks.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.idle.Wait()
	if err := s.s.Close(); err != nil {
		_ = s.d.check(err) // kept as the error of the device
	}
}
