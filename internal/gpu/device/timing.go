package device

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// work is something to queue on a stream.
type work struct {
	do   func(driver.Stream) error
	kind workKind
	name string // of a kernel or of a library
	// Of a kernel:
	groups, items [3]int
	// Of a copy:
	bytes int
}

// workKind says what a piece of work does, for traces and the time of kernels.
type workKind uint8

const (
	other workKind = iota // not traced
	kernelWork
	copyToDevice
	copyToHost
	copyWithin
	copyFromPeer
)

// timing is a piece of work with events before and after it.
type timing struct {
	begin, end driver.Event
	holders    atomic.Int32
}

// beginTimingLocked records the start of work.
func (s *stream) beginTimingLocked(holders int) (*timing, error) {
	e, err := s.s.Record(true)
	if err != nil {
		return nil, s.d.check(err)
	}
	t := &timing{begin: e}
	t.holders.Store(int32(holders)) //nolint:gosec // a few
	return t, nil
}

// endTimingLocked records the end of work.
func (s *stream) endTimingLocked(t *timing) error {
	var err error
	t.end, err = s.s.Record(true)
	return s.d.check(err)
}

// release closes the events when the last holder calls it.
func (t *timing) release() {
	if t.holders.Add(-1) > 0 {
		return
	}
	for _, e := range []driver.Event{t.begin, t.end} {
		if e != nil {
			e.Close()
		}
	}
}

const (
	// sampleEvery is the mean number of kernels from one whose time is taken to the next. Two timed
	// events cost about as much as the launch of a kernel.
	sampleEvery = 32
	// maxSamples bounds the kernels that have been timed and are not done.
	maxSamples = 256
)

// sampler estimates the time of all kernels of a stream from that of some. The distance from one
// timed kernel to the next is random, since steps repeat the same kernels. All fields are guarded
// by the lock of the stream.
type sampler struct {
	wait    int // kernels until the next one that is timed
	weight  int // kernels since the last one that was timed
	pending []sample
}

// sample is a timed kernel, which stands for weight kernels.
type sample struct {
	*timing
	weight int
}

// takeSampleLocked returns a timing for the next kernel if its time is to be taken.
func (s *stream) takeSampleLocked() (*timing, error) {
	m := &s.samples
	m.weight++
	if m.wait > 0 {
		m.wait--
		return nil, nil //nolint:nilnil // this kernel is not timed
	}
	s.addSamplesLocked()
	if len(m.pending) >= maxSamples {
		return nil, nil //nolint:nilnil // this kernel is not timed
	}
	m.wait = rand.IntN(2*sampleEvery - 1) //nolint:gosec // no secret
	return s.beginTimingLocked(1)
}

// addSamplesLocked adds the times of the samples that are done to the time of kernels.
func (s *stream) addSamplesLocked() {
	m := &s.samples
	done := 0
	for _, p := range m.pending {
		if ended, err := p.end.Done(); err != nil || !ended {
			break
		}
		if took, err := p.end.Since(p.begin); err == nil {
			s.d.counters.kernelTime.Add(int64(took) * int64(p.weight))
		}
		p.release()
		done++
	}
	m.pending = append(m.pending[:0], m.pending[done:]...)
}

// kernelTime returns the time that kernels of the device have run, estimated from some of them.
func (d *Device) kernelTime() time.Duration {
	s := d.compute
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.addSamplesLocked()
	}
	return time.Duration(d.counters.kernelTime.Load())
}
