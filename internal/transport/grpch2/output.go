package grpch2

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// copyLimit is the size up to which a message is copied next to the frames around it, to be
	// written at once.
	copyLimit = 8 << 10
	// queueLimit is how much may wait for a connection that takes nothing before those who write
	// have to wait, too.
	queueLimit = 256 << 10
	// floodLimit is how much may wait in answers to control frames. A peer that asks for more and
	// reads nothing is given up.
	floodLimit = 1 << 20
)

var (
	errFlood       = &connError{codeEnhanceYourCalm, "too many control frames"}
	errStreamEnded = errors.New("http2: the stream has ended")
)

// output writes a connection. There is no goroutine for it: who wants to write queues frames and,
// unless somebody is writing already, writes all that is queued.
type output struct {
	w net.Conn

	mu      sync.Mutex
	changed sync.Cond // something below has changed that somebody may wait for
	writing bool      // by one goroutine, without the lock
	queue   []byte    // frames to be written next
	spare   []byte    // a queue to take turns with
	vector  net.Buffers
	window  int64 // how much data the peer takes
	peer    settings
	err     error       // why nothing can be written any more
	clock   *time.Timer // writes what waited too long for others; nil before something waited
	ticking bool        // the clock is set
}

// flow is the sending side of a stream.
type flow struct {
	window int64 // guarded by output.mu
	ended  bool  // guarded by output.mu; nobody reads what is written
}

func (o *output) init(w net.Conn) {
	o.w, o.window, o.peer = w, firstWindow, defaultSettings()
	o.changed.L = &o.mu
}

// flush writes what is queued until nothing is left. mu is held, but not while writing.
func (o *output) flush() {
	for !o.writing && len(o.queue) > 0 && o.err == nil {
		buf := o.swap()
		o.mu.Unlock()
		_, err := o.w.Write(buf)
		o.mu.Lock()
		o.wrote(buf, err)
	}
}

// soon bounds how long frames wait for others to be written with.
const soon = 4 * time.Millisecond

// flushSoon sees to it that what is queued is written with what comes next, or soon. mu is held.
func (o *output) flushSoon() {
	switch {
	case o.ticking || o.writing: // who is writing will see it
	case o.clock == nil:
		o.ticking = true
		o.clock = time.AfterFunc(soon, o.tick)
	default:
		o.ticking = true
		o.clock.Reset(soon)
	}
}

func (o *output) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticking = false
	o.flush()
}

// swap takes the queue to be written.
func (o *output) swap() []byte {
	buf := o.queue
	o.queue, o.spare, o.writing = o.spare[:0], nil, true
	return buf
}

// wrote ends what swap began.
func (o *output) wrote(buf []byte, err error) {
	if cap(buf) <= queueLimit {
		o.spare = buf
	}
	o.writing = false
	if err != nil {
		o.fail(err)
	}
	o.changed.Broadcast()
}

// fail makes everybody stop writing. mu is held.
func (o *output) fail(err error) {
	if o.err == nil {
		o.err = err
	}
	o.changed.Broadcast()
}

// control queues frames that answer the peer's. They are written with the next flush.
func (o *output) control(frames []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, frames...)
	if len(o.queue) > floodLimit {
		return errFlood
	}
	return o.err
}

// pending reports whether something waits that nobody is writing.
func (o *output) pending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0 && !o.writing && o.err == nil
}

// drain writes what is queued.
func (o *output) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
}

// complete waits until all that was queued is written.
func (o *output) complete() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.flush(); (o.writing || len(o.queue) > 0) && o.err == nil; o.flush() {
		o.changed.Wait()
	}
}

// grant widens the window of the connection, or of a stream, by what a peer says.
func (o *output) grant(f *flow, n int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := &o.window
	if f != nil {
		w = &f.window
	}
	if *w += n; *w > maxWindow {
		return &connError{codeFlowControl, "a window is too large"}
	}
	o.changed.Broadcast()
	return nil
}

// A sending is the frames that go out on a stream: headers, a message, and trailers, which end the
// stream.
type sending interface {
	// mayStart reports whether the stream can start now, or an error if it never can. The
	// connection is locked.
	mayStart() (bool, error)
	// appendHead appends the headers. It is called once, with the connection locked: a client's
	// stream is opened here.
	appendHead(b []byte) []byte
	// appendTail appends the trailers, or nothing if the last of the data is to end the stream.
	appendTail(b []byte) []byte
}

// send writes the frames of a stream. It returns when all is written or, if it is small, copied. A
// call without data has no message. What can wait, and is small, is written with what comes next,
// or soon.
func (o *output) send(s *stream, frames sending, data [][]byte, canWait bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.start(s, frames); err != nil {
		return err
	}
	o.queue = frames.appendHead(o.queue)
	left := size(data)
	if int64(left) > min(o.window, s.flow.window, copyLimit) {
		err := o.sendLarge(s, frames, data, left)
		o.flush() // what others queued meanwhile, whatever has become of this message
		return err
	}
	if len(data) > 0 {
		o.window -= int64(left)
		s.flow.window -= int64(left)
		o.queue = appendFrameHeader(o.queue, left, frameData, 0, s.id)
		flags := len(o.queue) - frameHeaderSize + flagsAt
		for _, b := range data {
			o.queue = append(o.queue, b...)
		}
		before := len(o.queue)
		if o.queue = frames.appendTail(o.queue); len(o.queue) == before {
			o.queue[flags] = flagEndStream
		}
	} else {
		o.queue = frames.appendTail(o.queue)
	}
	if canWait && len(o.queue) < queueLimit {
		o.flushSoon()
	} else {
		o.flush()
	}
	return o.err
}

// start waits until a stream can start and the queue is not too long.
func (o *output) start(s *stream, frames sending) error {
	for {
		if err := o.state(&s.flow); err != nil {
			return err
		}
		ok, err := frames.mayStart()
		if err != nil {
			return err
		}
		if ok && (!o.writing || len(o.queue) <= queueLimit) {
			return nil
		}
		o.changed.Wait()
	}
}

func (o *output) state(f *flow) error {
	if f.ended {
		return errStreamEnded
	}
	return o.err
}

// sendLarge writes data from where it lies, as far as the windows let it. mu is held, but not while
// writing or waiting.
func (o *output) sendLarge(s *stream, frames sending, data [][]byte, left int) error {
	var frame [frameHeaderSize]byte
	f, tail := &s.flow, frames.appendTail(nil)
	rest := cutter{data: data}
	for left > 0 {
		for o.writing || min(o.window, f.window) <= 0 {
			o.flush()
			if err := o.state(f); err != nil {
				return err
			}
			if o.writing || min(o.window, f.window) <= 0 {
				o.changed.Wait()
			}
		}
		if err := o.state(f); err != nil {
			return err
		}
		n := int(min(int64(left), o.window, f.window, int64(min(o.peer.frame, ownMaxFrame))))
		left -= n
		o.window -= int64(n)
		f.window -= int64(n)
		queued := o.swap()
		last := left == 0
		flags := byte(0)
		if last && len(tail) == 0 {
			flags = flagEndStream
		}
		v := append(o.vector[:0], queued, appendFrameHeader(frame[:0], n, frameData, flags, s.id))
		v = rest.cut(v, n)
		if last {
			v = append(v, tail)
		}
		o.writeVector(v, queued)
	}
	return o.err
}

// writeVector writes buffers with as few system calls as there can be.
func (o *output) writeVector(v net.Buffers, queued []byte) {
	o.mu.Unlock()
	written := v
	_, err := written.WriteTo(o.w)
	clear(v)
	o.mu.Lock()
	o.vector = v
	o.wrote(queued, err)
}

func size(data [][]byte) int {
	n := 0
	for _, b := range data {
		n += len(b)
	}
	return n
}

// cutter takes a message apart.
type cutter struct {
	data [][]byte
	off  int // into the first of data
}

// cut appends the next n bytes.
func (c *cutter) cut(to net.Buffers, n int) net.Buffers {
	for n > 0 {
		b := c.data[0][c.off:]
		if len(b) > n {
			c.off += n
			return append(to, b[:n])
		}
		to = append(to, b)
		n -= len(b)
		c.data, c.off = c.data[1:], 0
	}
	return to
}
