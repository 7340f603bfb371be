package device

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/gpu/driver"
)

// Trace records the work of a device: kernels and copies, with their times on the device. Several
// traces may run at once. Each has the work of all steps that use the device.
type Trace struct {
	d     *Device
	limit int

	mu   sync.Mutex
	ops  []tracedOp // guarded by mu
	lost int        // pieces of work beyond the limit; guarded by mu
}

// tracedOp is a piece of work that has been queued.
type tracedOp struct {
	*timing
	stream *stream
	work   work
	node   string
	queued time.Time
}

// Operation is a kernel or a copy that a device has executed.
type Operation struct {
	// Node is the node that has queued the work; empty if it is not known.
	Node string
	// Name is the name of the kernel, or the kind of the copy: "MemcpyH2D", "MemcpyD2H",
	// "MemcpyD2D" or "MemcpyP2P".
	Name string
	// Detail describes the work in the words of TensorFlow's profiler.
	Detail string
	// Copy tells copies from kernels.
	Copy bool
	// Stream is the number of the stream on the device, from 1.
	Stream int
	Queued time.Time     // when the host queued the work
	Start  time.Time     // when the device began, by the clock of the host
	Took   time.Duration // on the device
}

// StartTrace begins to record the work of the device. It keeps limit pieces of work. The caller
// calls Stop. While a trace runs, a kernel costs two more events, about as much as its launch.
func (d *Device) StartTrace(limit int) *Trace {
	t := &Trace{d: d, limit: limit}
	d.tracing.mu.Lock()
	defer d.tracing.mu.Unlock()
	d.tracing.storeLocked(append(slices.Clone(d.tracing.traces()), t))
	return t
}

// Stop ends the trace. It waits for the work that has been queued, and returns it in the order in
// which it was queued, without that beyond the limit, which it counts.
func (t *Trace) Stop() (ops []Operation, lost int, err error) {
	t.d.tracing.mu.Lock()
	t.d.tracing.storeLocked(slices.DeleteFunc(slices.Clone(t.d.tracing.traces()), func(o *Trace) bool { return o == t }))
	t.d.tracing.mu.Unlock()
	marks := map[*stream]mark{}
	for _, s := range t.d.streams() {
		m, e := s.markTime()
		marks[s] = m
		err = errors.Join(err, e)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.ops {
		op := &t.ops[i]
		if err == nil {
			var o Operation
			if o, err = op.operation(marks[op.stream]); err == nil {
				ops = append(ops, o)
			}
		}
		op.release()
	}
	for _, m := range marks {
		if m.event != nil {
			m.event.Close()
		}
	}
	lost, t.ops = t.lost, nil
	return ops, lost, err
}

// mark is a point in a stream, and the time of the host at which the stream has reached it.
type mark struct {
	event driver.Event // nil if it could not be recorded
	at    time.Time
}

// markTime waits for the work of the stream.
func (s *stream) markTime() (mark, error) {
	var m mark
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return m, s.d.closedError()
	}
	var err error
	m.event, err = s.s.Record(true)
	s.mu.Unlock()
	if err == nil {
		err = m.event.Sync()
	}
	m.at = time.Now()
	return m, s.d.check(err)
}

// operation describes work that is done.
func (op *tracedOp) operation(m mark) (Operation, error) {
	o := Operation{Node: op.node, Stream: op.stream.number, Queued: op.queued}
	took, err := op.end.Since(op.begin)
	if err != nil {
		return o, err
	}
	ago, err := m.event.Since(op.begin)
	if err != nil {
		return o, err
	}
	o.Took, o.Start = took, m.at.Add(-ago)
	if o.Start.Before(op.queued) { // the clocks differ by the time in which the host has woken up
		o.Start = op.queued
	}
	o.Name, o.Detail, o.Copy = op.work.describe()
	return o, nil
}

// describe returns the name of a piece of work, its details and whether it is a copy.
func (w *work) describe() (name, detail string, isCopy bool) {
	between := func(from, to string) string {
		return fmt.Sprintf("kind_src:%s kind_dst:%s size:%d async:1", from, to, w.bytes)
	}
	switch w.kind {
	case copyToDevice:
		return "MemcpyH2D", between("pinned", "device"), true
	case copyToHost:
		return "MemcpyD2H", between("device", "pinned"), true
	case copyWithin:
		return "MemcpyD2D", between("device", "device"), true
	case copyFromPeer:
		return "MemcpyP2P", between("device", "device"), true
	case kernelWork, other:
	}
	if w.items != [3]int{} {
		detail = fmt.Sprintf("grid:%d,%d,%d block:%d,%d,%d", w.groups[0], w.groups[1], w.groups[2], w.items[0], w.items[1], w.items[2])
	}
	return w.name, detail, false
}

// add adds a piece of work whose start has been recorded.
func (t *Trace) add(op *tracedOp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ops) >= t.limit {
		t.lost++
		op.release()
		return
	}
	t.ops = append(t.ops, *op)
}
