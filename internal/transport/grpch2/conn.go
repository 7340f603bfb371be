package grpch2

import (
	"errors"
	"io"
	"net"
	"time"
)

// conn is what both sides of a connection have in common: it reads frames and keeps the streams.
type conn struct {
	nc   net.Conn
	side side
	turn turn
	out  output

	// Of who has the turn to read.
	in       input
	headers  *fieldReader
	block    []byte      // headers that continue in the next frame
	opening  frameHeader // of the frame that block began with; on stream 0 if there is none
	greeted  bool        // the peer's settings have come
	received int64       // data since the peer's window was last widened
	last     uint32      // the newest stream that the peer opened

	streams map[uint32]*stream // guarded by out.mu; those that are not over
}

// side is what a client does otherwise than a server. All methods are called by who reads the
// connection. An error ends the connection, or says that it is not this goroutine's turn any more.
type side interface {
	// headersRead takes the headers of a request or response, or trailers. s is nil if the stream
	// is not open.
	headersRead(id uint32, s *stream, f *fields, end bool) error
	// messageRead takes the end of what the peer sends on a stream.
	messageRead(s *stream) error
	// wentAway is told that the peer will answer no stream after last.
	wentAway(last uint32, code errCode, why string)
	// ponged is told that our ping was answered.
	ponged()
	// mayBeOver reports whether a stream that is not open has been.
	mayBeOver(id uint32) bool
	// givenUp is told that the peer wants nothing more of a stream, which may be over.
	givenUp(id uint32)
	// ended is told that nothing is read any more. All streams have been reset.
	ended(err error)
}

// A stream is a call on its connection.
type stream struct {
	id    uint32
	owner owner
	flow  flow
	in    incoming // of who reads the connection
}

// owner is the call of a stream.
type owner interface {
	// room returns the memory for a message.
	room(size int) Body
	// broken ends a call whose peer sent something wrong: with a status for who called, and a code
	// for the stream.
	broken(code uint32, text string, reset errCode)
	// reset ends a call that the peer, or the end of the connection, ended.
	reset(code errCode, why error)
}

// errTurnLost says that another goroutine reads the connection.
var errTurnLost = errors.New("http2: another goroutine reads")

// lastWords is how long a connection that is to end waits for a peer to take the reason.
const lastWords = time.Second

func (c *conn) init(nc net.Conn, s side) {
	c.nc, c.side, c.in, c.headers = nc, s, newInput(nc), newFieldReader()
	c.streams = map[uint32]*stream{}
	c.out.init(nc)
}

// readAll reads frames until the connection ends or another goroutine has the turn.
func (c *conn) readAll() {
	for {
		err := c.readFrame()
		if err == nil && !c.in.hasRequest() && c.out.pending() {
			err = c.during(c.out.drain)
		}
		switch {
		case err == nil:
		case errors.Is(err, errTurnLost):
			return
		default:
			c.end(err)
			return
		}
	}
}

// during does what may block without keeping others from reading.
func (c *conn) during(work func()) error {
	c.turn.leave()
	work()
	if !c.turn.back() {
		return errTurnLost
	}
	return nil
}

// end closes the connection and ends its streams.
func (c *conn) end(err error) {
	if breach, ok := errors.AsType[*connError](err); ok {
		c.sayGoodbye(breach)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errSocketClosed
	}
	c.nc.Close()
	for _, s := range c.closeStreams(err) {
		s.in.abandon()
		s.owner.reset(codeCancel, err)
	}
	c.side.ended(err)
}

// closeStreams makes all who write give up, and returns what streams there were.
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

// errSocketClosed has the words that TensorFlow's programs know.
var errSocketClosed = errors.New("Socket closed") //nolint:staticcheck // and so the capital

// sayGoodbye tells the peer what it did wrong.
func (c *conn) sayGoodbye(why *connError) {
	// without it, the peer is told at its own pace
	_ = c.nc.SetWriteDeadline(time.Now().Add(lastWords))
	_ = c.out.control(goAway(c.last, why.code, why.why))
	c.out.drain()
}

// open adds a stream, which must be new, to a connection that has not ended. out.mu is held.
func (c *conn) open(s *stream) {
	s.flow.window = c.out.peer.window
	c.streams[s.id] = s
}

// find returns a stream that is open, or nil.
func (c *conn) find(id uint32) *stream {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.streams[id]
}

// forget ends a stream, which need not have been opened, and reports whether it was the first to.
// Nobody writes to it any more.
func (c *conn) forget(s *stream) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if s.flow.ended {
		return false
	}
	s.flow.ended = true
	delete(c.streams, s.id)
	c.out.changed.Broadcast()
	return true
}

// busy reports whether streams are open.
func (c *conn) busy() bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.streams) > 0
}
