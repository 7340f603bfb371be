package device

import (
	"errors"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// stream is a queue of the device, with the callbacks that are due.
type stream struct {
	d      *Device
	number int // from 1

	mu      sync.Mutex // held while work is queued, which one goroutine may do at a time
	s       driver.Stream
	pending []callback     // guarded by mu; oldest first
	running bool           // guarded by mu; the goroutine of run exists
	closed  bool           // guarded by mu
	samples sampler        // guarded by mu
	idle    sync.WaitGroup // the goroutine of run
}

// callback is a function that is called when the stream has reached an event.
type callback struct {
	event driver.Event
	f     func(error)
}

func newStream(d *Device, number int) (*stream, error) {
	s, err := d.dev.NewStream()
	if err != nil {
		return nil, d.check(err)
	}
	return &stream{d: d, number: number, s: s}, nil
}

// queue queues work. If then is not nil, it is called when that work is done, on the goroutine of
// the stream, unless queue returns an error.
func (s *stream) queue(w work, then func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queueLocked(w, then)
}

// after calls then when all work that has been queued is done.
func (s *stream) after(then func(error)) error {
	return s.queue(work{do: func(driver.Stream) error { return nil }}, then)
}

func (s *stream) queueLocked(w work, then func(error)) error {
	if err := s.d.Err(); err != nil {
		return err
	}
	if s.closed {
		return s.d.closedError()
	}
	if err := s.doLocked(w); err != nil {
		return err
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

// callLocked calls the function of work. An error that says that a library does not support the
// arguments leaves the device usable.
func (s *stream) callLocked(w work) error {
	err := w.do(s.s)
	if errors.Is(err, driver.ErrUnsupported) {
		return err
	}
	return s.d.check(err)
}

// doLocked queues work, with events around it if its time is to be taken.
func (s *stream) doLocked(w work) error {
	traces := s.d.tracing.traces()
	if w.kind == other || w.kind != kernelWork && len(traces) == 0 {
		return s.callLocked(w)
	}
	var sampled *timing
	var err error
	if w.kind == kernelWork {
		if sampled, err = s.takeSampleLocked(); err != nil {
			return err
		}
	}
	if len(traces) > 0 {
		err = s.doTracedLocked(w, traces)
	} else {
		err = s.callLocked(w)
	}
	if sampled == nil {
		return err
	}
	if err == nil {
		err = s.endTimingLocked(sampled)
	}
	if err != nil {
		sampled.release()
		return err
	}
	s.samples.pending = append(s.samples.pending, sample{sampled, s.samples.weight})
	s.samples.weight = 0
	return nil
}

// doTracedLocked queues work and adds it to traces.
func (s *stream) doTracedLocked(w work, traces []*Trace) error {
	op := tracedOp{stream: s, work: w, queued: time.Now()}
	if w.kind == kernelWork {
		op.node = s.d.tracing.node()
	}
	var err error
	if op.timing, err = s.beginTimingLocked(len(traces)); err != nil {
		return err
	}
	if err = s.callLocked(w); err == nil {
		err = s.endTimingLocked(op.timing)
	}
	op.work.do = nil
	for _, t := range traces {
		if err != nil {
			op.release()
			continue
		}
		t.add(&op)
	}
	return err
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

// drain waits for the work of the stream, but not for the callbacks. It takes no lock, since the
// caller holds that of the pool, and may hold that of the stream.
func (s *stream) drain() error { return s.d.check(s.s.Sync()) }

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
	for _, p := range s.samples.pending {
		p.release()
	}
	s.samples.pending = nil
	if err := s.s.Close(); err != nil {
		_ = s.d.check(err) // kept as the error of the device
	}
}
