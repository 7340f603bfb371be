package grpch2

import (
	"errors"
	"io"
	"net"
	"time"
)

// conn is the common part of a client connection and a server connection. It reads frames and keeps
// the open streams.
type conn struct {
	nc    net.Conn
	role  role
	token readToken
	out   output

	// The following fields are guarded by the read token.
	in           *input
	headers      *fieldReader
	headerBlock  []byte      // header fragments whose block continues in the next frame
	headersFrame frameHeader // HEADERS frame that started headerBlock; on stream 0 if there is none
	settingsRead bool        // the first SETTINGS frame of the peer has arrived
	unackedData  int64       // bytes of data since the last WINDOW_UPDATE of the connection
	lastStream   uint32      // newest stream that the peer opened

	streams map[uint32]*stream // open streams by ID; nil after the end; guarded by out.mu
}

// role is the part of a connection that differs between client and server. The holder of the read
// token calls its methods. An error ends the connection, except errTokenLost, which ends only the
// reading by this goroutine.
type role interface {
	// headersRead handles the headers of a request or response, or trailers. s is nil if the stream
	// is not open.
	headersRead(id uint32, s *stream, f *fields, end bool) error
	// dataRead is called after every frame that carries data of a stream or ends it. The message
	// may be complete before the stream ends; end reports the end.
	dataRead(s *stream, end bool) error
	// goAwayRead handles GOAWAY: the peer answers no stream after last.
	goAwayRead(last uint32, code errCode, why string)
	// pingRead handles a PING, which is answered.
	pingRead()
	// pingAcked handles the answer to our PING, with its payload.
	pingAcked(payload uint64)
	// wasOpened reports whether a stream that is not open was open before.
	wasOpened(id uint32) bool
	// lateData handles DATA on a stream that was open before.
	lateData(id uint32) error
	// resetsIdle reports whether the peer may reset a stream that was never opened.
	resetsIdle() bool
	// resetRead records that the peer has reset a stream, which may have ended before.
	resetRead(id uint32)
	// peerReset handles RST_STREAM: the peer discards the rest of a stream, which may have ended.
	peerReset(id uint32)
	// closed is called when reading has ended and all streams have been reset.
	closed(err error)
}

// A stream carries one call on its connection.
type stream struct {
	id    uint32
	owner owner
	flow  flow
	in    inboundMessage // guarded by the read token, except for abandon

	// The following fields are guarded by the read token.
	peerEnded     bool  // the peer has ended its half of the stream
	contentLength int64 // bytes of data that the peer has announced; -1 for none
	received      int64 // bytes of data, without padding

	sweeps int // sweeps of a server since the last frame; guarded by out.mu
}

// checkLength reports whether the data agrees with the content-length, so far or at the end of the
// stream.
func (s *stream) checkLength(end bool) bool {
	return s.contentLength < 0 || s.received == s.contentLength || !end && s.received < s.contentLength
}

// owner is the call that a stream carries.
type owner interface {
	// checkSize returns an error for a message of n bytes, as it arrives, that is too large.
	checkSize(n int) *callError
	// newBody returns the memory for a message of size bytes.
	newBody(size int) Body
	// abort ends a call because the peer sent something invalid: with a gRPC code and text for the
	// caller, and an error code for the stream.
	abort(code uint32, text string, reset errCode)
	// reset ends a call after RST_STREAM (code), or after the end of the connection (why).
	reset(code errCode, why error)
}

// errTokenLost reports that another goroutine reads the connection.
var errTokenLost = errors.New("http2: another goroutine reads")

// goAwayTimeout bounds how long the end of a connection waits for the peer to take the last frames.
const goAwayTimeout = time.Second

func (c *conn) init(nc net.Conn, r role) {
	c.nc, c.role, c.in, c.headers = nc, r, newInput(nc), newFieldReader()
	c.streams = map[uint32]*stream{}
	c.out.init(nc)
}

// readAll reads frames until the connection ends or another goroutine has the read token.
func (c *conn) readAll() {
	for {
		err := c.readFrame()
		if err == nil && !c.in.hasCompleteMessage() && c.out.pending() {
			err = c.releaseDuring(c.out.flush)
		}
		switch {
		case err == nil:
		case errors.Is(err, errTokenLost):
			return
		default:
			c.shutdown(err)
			return
		}
	}
}

// releaseDuring runs work, which may block, while other goroutines may take the read token. It
// returns errTokenLost if one did.
func (c *conn) releaseDuring(work func()) error {
	c.token.release()
	work()
	if !c.token.reacquire() {
		return errTokenLost
	}
	return nil
}

// shutdown closes the connection and resets its streams. Errors of the protocol are reported to the
// peer first.
func (c *conn) shutdown(err error) {
	if breach, ok := errors.AsType[*connError](err); ok {
		c.sendGoAway(breach)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errSocketClosed
	}
	c.nc.Close()
	for _, s := range c.closeStreams(err) {
		s.in.abandon()
		s.owner.reset(codeCancel, err)
	}
	c.role.closed(err)
}

// closeStreams makes all writers fail, and returns the streams that were open.
func (c *conn) closeStreams(err error) map[uint32]*stream {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.fail(err)

	streams := c.streams
	c.streams = nil
	for _, s := range streams {
		s.flow.ended = true
	}
	return streams
}

// errSocketClosed has the text that programs written for TensorFlow match.
var errSocketClosed = errors.New("Socket closed") //nolint:staticcheck // capitalized as in gRPC

// sendGoAway reports a breach of the protocol to the peer.
func (c *conn) sendGoAway(why *connError) {
	// without a deadline, a peer that reads slowly would hold up the end
	_ = c.nc.SetWriteDeadline(time.Now().Add(goAwayTimeout))
	_ = c.out.queueControl(goAway(c.lastStream, why.code, why.why))
	c.out.flush()
}

// addStream adds a new stream to a connection that has not ended. The caller holds out.mu.
func (c *conn) addStream(s *stream) {
	s.flow.window = c.out.peer.window
	c.streams[s.id] = s
}

// findStream returns an open stream, or nil.
func (c *conn) findStream(id uint32) *stream {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	s := c.streams[id]
	if s != nil {
		s.sweeps = 0
	}
	return s
}

// removeStream ends a stream and reports whether this call did. Nothing more is written to the
// stream. A stream that was never added may be removed, too.
func (c *conn) removeStream(s *stream) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.removeLocked(s)
}

// resetStream is like removeStream, and queues RST_STREAM if the stream was opened. Both happen in
// one step: a call that waits for the place of the stream must not be written before RST_STREAM,
// because the peer still counts the stream and would refuse the call.
func (c *conn) resetStream(s *stream, code errCode) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if !c.removeLocked(s) {
		return false
	}
	if s.id != 0 {
		c.out.queue = appendUint32Frame(c.out.queue, frameReset, s.id, uint32(code))
	}
	return true
}

// removeLocked implements removeStream. The caller holds out.mu.
func (c *conn) removeLocked(s *stream) bool {
	if s.flow.ended {
		return false
	}
	s.flow.ended = true
	delete(c.streams, s.id)
	c.out.changed.Broadcast()
	return true
}

// hasStreams reports whether streams are open.
func (c *conn) hasStreams() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.streams) > 0
}
