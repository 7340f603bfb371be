package grpch2

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

const (
	// copyLimit is the largest message, in bytes, that is copied into the queue, so that one system
	// call writes it with the frames around it.
	copyLimit = 8 << 10
	// queueLimit is the length of the queue, in bytes, from which senders block until the peer
	// reads.
	queueLimit = 256 << 10
	// floodLimit is the length of the queue, in bytes, from which a connection is closed: the peer
	// sends control frames and does not read the answers.
	floodLimit = 1 << 20
)

var (
	errFlood       = &connError{codeEnhanceYourCalm, "too many control frames"}
	errStreamEnded = errors.New("http2: the stream has ended")
)

// output is the writing side of a connection.
//
// The simple design has a writer goroutine that drains a queue. Handing frames to it wakes a thread
// for each call, about 40 µs. So there is no writer goroutine: a sender appends its frames to the
// queue and, unless another goroutine is writing, writes the whole queue itself. A goroutine that
// finds another one writing may return at once, because the writer continues until the queue is
// empty. The frames of one response thus go out in one system call and wake the peer once, and
// control frames travel with the next message.
type output struct {
	w net.Conn

	mu       sync.Mutex  // guards all fields below
	changed  sync.Cond   // signals a change of the fields that senders wait for
	writing  bool        // a goroutine writes, without holding mu
	queue    []byte      // frames to be written next
	spare    []byte      // the buffer that alternates with queue
	vector   net.Buffers // reused by writeVector
	window   int64       // bytes of data that the peer accepts on the connection
	peer     settings
	err      error       // why the connection cannot be written; nil if it can
	timer    *time.Timer // calls flushTimerFired; nil before the first delayed flush
	timerSet bool        // the timer is running
	writes   uint32      // number of writes that were started
}

// flow is the sending side of a stream. Its fields are guarded by output.mu.
type flow struct {
	window  int64 // bytes of data that the peer accepts on the stream
	ended   bool  // the stream has ended; nothing may be written to it
	sending bool  // a sender has data that is not written
	sweeps  int   // sweeps of a server since data was written
}

func (o *output) init(w net.Conn) {
	o.w, o.window, o.peer = w, firstWindow, defaultSettings()
	o.changed.L = &o.mu
}

// flushLocked writes the queue until it is empty. The caller holds mu, which is released during the
// system call.
func (o *output) flushLocked() {
	for !o.writing && len(o.queue) > 0 && o.err == nil {
		buf := o.takeQueue()
		o.mu.Unlock()
		err := failpoint.Hit("grpch2/write")
		if err == nil {
			_, err = o.w.Write(buf)
		}
		o.mu.Lock()
		o.finishWrite(buf, err)
	}
}

// flushDelay bounds how long delayed frames wait for other frames. A timer that fires more often
// would keep threads awake.
const flushDelay = 4 * time.Millisecond

// flushDelayed writes the queue with the next flush, or after flushDelay. The caller holds mu.
func (o *output) flushDelayed() {
	switch {
	case o.timerSet || o.writing: // the current writer also writes what was queued meanwhile
	case o.timer == nil:
		o.timerSet = true
		o.timer = time.AfterFunc(flushDelay, o.flushTimerFired)
	default:
		o.timerSet = true
		o.timer.Reset(flushDelay)
	}
}

func (o *output) flushTimerFired() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timerSet = false
	o.flushLocked()
}

// takeQueue returns the queue for writing. finishWrite must follow.
func (o *output) takeQueue() []byte {
	buf := o.queue
	o.queue, o.spare, o.writing = o.spare[:0], nil, true
	o.writes++
	return buf
}

// finishWrite ends the write that takeQueue started.
func (o *output) finishWrite(buf []byte, err error) {
	if cap(buf) <= queueLimit {
		o.spare = buf
	}
	o.writing = false
	if err != nil {
		o.fail(err)
		o.w.Close() // ends the reader, and with it all calls, which may wait for answers
	}
	o.changed.Broadcast()
}

// fail makes all present and future senders return an error. The caller holds mu.
func (o *output) fail(err error) {
	if o.err == nil {
		o.err = err
	}
	o.changed.Broadcast()
}

// queueControl queues frames that answer frames of the peer. The next flush writes them.
func (o *output) queueControl(frames []byte) error {
	if err := failpoint.Hit("grpch2/queue-control"); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, frames...)
	if len(o.queue) > floodLimit {
		return errFlood
	}
	return o.err
}

// pending reports whether frames are queued that no goroutine is writing.
func (o *output) pending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) > 0 && !o.writing && o.err == nil
}

// flush writes the queue, unless another goroutine is writing it.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
}

// flushAndWait returns when the queue has been written, or the connection has failed.
func (o *output) flushAndWait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.flushLocked(); (o.writing || len(o.queue) > 0) && o.err == nil; o.flushLocked() {
		o.changed.Wait()
	}
}

// addWindow adds n bytes to the window of a stream, or of the connection if f is nil.
func (o *output) addWindow(f *flow, n int64) error {
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

// A frameSource produces the frames of one stream around its data: headers, and trailers that end
// the stream. Its methods are called with output.mu held.
type frameSource interface {
	// canStart reports whether the stream can start now, or an error if it never can.
	canStart() (bool, error)
	// appendHeaderFrames appends the headers. It is called once per stream; a client opens its
	// stream here.
	appendHeaderFrames(b []byte) []byte
	// appendTrailerFrames appends the trailers, or nothing if the last data frame ends the stream.
	appendTrailerFrames(b []byte) []byte
}

// send writes a stream: headers, one message and trailers. A response without a message has no
// data. It returns when the data has been written or, if it is small, copied into the queue. With
// mayDelay, a small message is written with the next flush, or after flushDelay.
func (o *output) send(s *stream, frames frameSource, data [][]byte, mayDelay bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.waitStart(s, frames); err != nil {
		return err
	}
	o.queue = frames.appendHeaderFrames(o.queue)
	left := size(data)
	if int64(left) > min(o.window, s.flow.window, copyLimit) {
		err := o.sendLarge(s, frames, data, left)
		o.flushLocked() // frames that were queued meanwhile, even if this message failed
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
		if o.queue = frames.appendTrailerFrames(o.queue); len(o.queue) == before {
			o.queue[flags] = flagEndStream
		}
	} else {
		o.queue = frames.appendTrailerFrames(o.queue)
	}
	if mayDelay && len(o.queue) < queueLimit {
		o.flushDelayed()
	} else {
		o.flushLocked()
	}
	return o.err
}

// waitStart waits until the stream can start and the queue is below its limit.
func (o *output) waitStart(s *stream, frames frameSource) error {
	for {
		if err := o.check(&s.flow); err != nil {
			return err
		}
		ok, err := frames.canStart()
		if err != nil {
			return err
		}
		if ok && (!o.writing || len(o.queue) <= queueLimit) {
			return nil
		}
		o.changed.Wait()
	}
}

// check returns an error if the stream has ended or the connection has failed.
func (o *output) check(f *flow) error {
	if f.ended {
		return errStreamEnded
	}
	return o.err
}

// sendLarge writes data from the memory that holds it, in frames as large as the windows allow. The
// caller holds mu, which is released while writing and waiting.
func (o *output) sendLarge(s *stream, frames frameSource, data [][]byte, left int) error {
	var frame [frameHeaderSize]byte
	f, tail := &s.flow, frames.appendTrailerFrames(nil)
	rest := splitter{data: data}
	f.sending, f.sweeps = true, 0
	defer func() { f.sending = false }()
	for left > 0 {
		for o.writing || min(o.window, f.window) <= 0 {
			o.flushLocked()
			if err := o.check(f); err != nil {
				return err
			}
			if o.writing || min(o.window, f.window) <= 0 {
				o.changed.Wait()
			}
		}
		if err := o.check(f); err != nil {
			return err
		}
		n := int(min(int64(left), o.window, f.window, int64(min(o.peer.frame, ownMaxFrame))))
		left -= n
		f.sweeps = 0
		o.window -= int64(n)
		f.window -= int64(n)
		queued := o.takeQueue()
		last := left == 0
		flags := byte(0)
		if last && len(tail) == 0 {
			flags = flagEndStream
		}
		v := append(o.vector[:0], queued, appendFrameHeader(frame[:0], n, frameData, flags, s.id))
		v = rest.take(v, n)
		if last {
			v = append(v, tail)
		}
		o.writeVector(v, queued)
	}
	return o.err
}

// writeVector writes buffers with one system call where possible (writev). The caller holds mu,
// which is released during the call.
func (o *output) writeVector(v net.Buffers, queued []byte) {
	o.mu.Unlock()
	err := failpoint.Hit("grpch2/write-large")
	if secure, ok := o.w.(SecureConn); ok && err == nil {
		err = secure.WriteBuffers(v)
	} else if err == nil {
		written := v
		_, err = written.WriteTo(o.w)
	}
	clear(v)
	o.mu.Lock()
	o.vector = v
	o.finishWrite(queued, err)
}

func size(data [][]byte) int {
	n := 0
	for _, b := range data {
		n += len(b)
	}
	return n
}

// A splitter cuts a message into frames without copying it.
type splitter struct {
	data [][]byte
	off  int // offset into the first element of data
}

// take appends the next n bytes of the message to a vector.
func (c *splitter) take(to net.Buffers, n int) net.Buffers {
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
