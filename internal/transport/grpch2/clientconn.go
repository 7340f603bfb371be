package grpch2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
)

// clientConn is a connection of a client.
//
// The simple design has a goroutine that reads the connection and wakes each caller. Waking the
// caller takes about 40 µs of a small step. So a caller reads the connection itself until its
// response has arrived, as long as calls follow each other. A goroutine reads for the others
// (runReader) while several callers wait, and always once calls have been made with Start, whose
// callbacks need no other goroutine.
type clientConn struct {
	conn
	client          *Client
	next            uint32      // ID of the next stream; guarded by out.mu
	goingAway       bool        // the server accepts no new streams; guarded by out.mu
	dedicatedReader atomic.Bool // a goroutine reads even if no call waits
	alive           keepalive
	failure         atomic.Pointer[error] // why the connection was ended here; nil if it was not
}

// handshake starts HTTP/2 and waits for the settings of the server. ctx bounds it.
func handshake(ctx context.Context, client *Client, nc net.Conn) (*clientConn, error) {
	c := &clientConn{client: client, next: 1}
	c.init(nc, c)
	c.token.init(c.runReader)
	if err := failpoint.Hit("grpch2/client-handshake"); err != nil {
		nc.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	err := c.out.queueControl(appendOwnSettings([]byte(preface), false, 0))
	c.out.flush()
	for err == nil && !c.settingsRead {
		err = c.readFrame()
	}
	c.out.flush() // acknowledges the settings of the server
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("HTTP/2 handshake with %v: %w", nc.RemoteAddr(), err)
	}
	return c, nil
}

// start makes the connection available to calls.
func (c *clientConn) start() { c.yieldToken() }

// close closes the connection. It first writes the queue, so that the server learns which calls
// were cancelled.
func (c *clientConn) close() {
	// without a deadline, a server that reads slowly would hold up the end
	_ = c.nc.SetWriteDeadline(time.Now().Add(goAwayTimeout))
	c.out.flushAndWait()
	c.nc.Close()
	if c.token.reacquire() {
		c.shutdown(errClosing)
	}
}

// runReader reads for all calls until none waits; a dedicated reader continues.
func (c *clientConn) runReader() {
	c.in.r.poller.yieldFirst = true
	for c.readOne() {
		if !c.dedicatedReader.Load() && !c.hasStreams() {
			c.yieldToken()
			return
		}
	}
}

// readOne reads a frame. It reports false if this goroutine must not read on: it lost the token, or
// the connection has ended.
func (c *clientConn) readOne() bool {
	err := c.readFrame()
	if err == nil && !c.in.buffered() && c.out.pending() {
		err = c.releaseDuring(c.out.flush)
	}
	switch {
	case err == nil:
	case errors.Is(err, errTokenLost):
		return false
	case errors.Is(err, os.ErrDeadlineExceeded): // interruptReader was called
		err = c.nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		if failure := c.failure.Load(); failure != nil {
			err = *failure
		}
		c.shutdown(err)
	}
	return err == nil
}

// yieldToken releases the read token. A call that started to wait while the token was held did not
// read itself, so the token is reacquired for runReader if calls are open.
func (c *clientConn) yieldToken() {
	c.token.release()
	if (c.dedicatedReader.Load() || c.hasStreams()) && c.token.reacquire() {
		go c.runReader()
	}
}

// interruptReader makes the reader return from Read between two frames, to check whether its call
// has ended.
func (c *clientConn) interruptReader() {
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // an error means that the connection has ended
}

func (c *clientConn) closed(error) {
	c.stopKeepalive()
	c.token.stop()
	c.client.removeConn(c)
}

func (c *clientConn) pingRead() {}

func (c *clientConn) pingAcked(uint64) {}

func (c *clientConn) peerReset(uint32) {}

func (c *clientConn) wasOpened(id uint32) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return id%2 == 1 && id < c.next
}

// lateData ignores data of cancelled calls.
func (c *clientConn) lateData(uint32) error { return nil }

func (c *clientConn) resetsIdle() bool { return false }

func (c *clientConn) resetRead(uint32) {}

// goAwayRead lets calls continue that the server still answers. The others are made again over a
// new connection.
func (c *clientConn) goAwayRead(last uint32, code errCode, why string) {
	c.client.retire(c)
	c.out.mu.Lock()
	c.goingAway = true
	var unseen []*stream
	for id, s := range c.streams {
		if id > last {
			unseen = append(unseen, s)
		}
	}
	c.out.mu.Unlock()
	err := fmt.Errorf("the server is going away (code %d): %s", code, why)
	for _, s := range unseen {
		if c.removeStream(s) {
			s.in.abandon()
			s.owner.reset(codeRefused, err)
		}
	}
	c.closeWhenDone()
}

// closeWhenDone closes a connection that accepts no new calls after its last call.
func (c *clientConn) closeWhenDone() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.goingAway && len(c.streams) == 0 {
		c.nc.Close()
	}
}

// headersRead handles the headers or trailers of a response.
func (c *clientConn) headersRead(id uint32, s *stream, f *fields, end bool) error {
	if err := failpoint.Hit("grpch2/response-headers"); err != nil {
		return err
	}
	if s == nil {
		if !c.wasOpened(id) {
			return protocolError("headers on a stream that was never opened")
		}
		return nil
	}
	call := s.owner.(*clientCall) //nolint:forcetypeassert // nothing else opens streams here
	if f.tooLarge() {
		return c.abortStream(s, codeCancel, "the headers of a response are too large")
	}
	check := f.checkResponse
	if call.headersSeen {
		check = f.checkTrailers
	}
	if bad := check(); bad != "" {
		return c.abortStream(s, codeProtocol, bad)
	}
	if !call.headersSeen && !end && len(f.status) == 3 && f.status[0] == '1' {
		return nil // an interim response (1xx)
	}
	if bad := call.takeHeaders(f, end); bad != "" {
		return c.abortStream(s, codeProtocol, bad)
	}
	if end {
		call.finish()
	}
	return nil
}

// dataRead rejects a response that ends without trailers.
func (c *clientConn) dataRead(s *stream, end bool) error {
	if !end {
		return nil
	}
	return c.abortStream(s, codeProtocol, "server closed the stream without sending trailers")
}
