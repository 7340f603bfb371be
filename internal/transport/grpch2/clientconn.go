package grpch2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// clientConn is a connection of a client. While calls come one after the other, each reads the
// connection itself until it has its response. When several wait at the same time, or none for a
// while, a goroutine reads.
type clientConn struct {
	conn
	client   *Client
	next     uint32      // the next stream; guarded by out.mu
	away     bool        // guarded by out.mu; the server takes no new streams
	attended atomic.Bool // a goroutine reads whether somebody waits or not
}

// greet begins to speak HTTP/2, and waits for the server to do so.
func greet(ctx context.Context, client *Client, nc net.Conn) (*clientConn, error) {
	c := &clientConn{client: client, next: 1}
	c.init(nc, c)
	c.turn.start(c.readOn)
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	err := c.out.control(appendOwnSettings([]byte(preface), false))
	c.out.drain()
	for err == nil && !c.greeted {
		err = c.readFrame()
	}
	c.out.drain() // the acknowledgement
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("the server at %v does not greet: %w", nc.RemoteAddr(), err)
	}
	return c, nil
}

// start lets calls use the connection.
func (c *clientConn) start() { c.yield() }

// close ends the connection. The server still learns which calls were given up, if it listens.
func (c *clientConn) close() {
	// without it, the server is told at its own pace
	_ = c.nc.SetWriteDeadline(time.Now().Add(lastWords))
	c.out.complete()
	c.nc.Close()
	if c.turn.back() {
		c.end(errClosing)
	}
}

// readOn reads for all who wait, until nobody does.
func (c *clientConn) readOn() {
	c.in.r.lookout.polite = true
	for c.readOne() {
		if !c.attended.Load() && !c.busy() {
			c.yield()
			return
		}
	}
}

// readOne reads a frame and reports whether there is another.
func (c *clientConn) readOne() bool {
	err := c.readFrame()
	if err == nil && !c.in.buffered() && c.out.pending() {
		err = c.during(c.out.drain)
	}
	switch {
	case err == nil:
	case errors.Is(err, errTurnLost):
		return false
	case errors.Is(err, os.ErrDeadlineExceeded): // meant to interrupt somebody
		err = c.nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		c.end(err)
	}
	return err == nil
}

// yield lets others read. If somebody began to wait who found that it was not their turn, a
// goroutine reads for them.
func (c *clientConn) yield() {
	c.turn.leave()
	if (c.attended.Load() || c.busy()) && c.turn.back() {
		go c.readOn()
	}
}

// interrupt makes whoever reads look up.
func (c *clientConn) interrupt() {
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // an error means that it has ended
}

func (c *clientConn) ended(error) {
	c.turn.stop()
	c.client.remove(c)
}

func (c *clientConn) ponged() {}

func (c *clientConn) givenUp(uint32) {}

func (c *clientConn) mayBeOver(id uint32) bool {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return id%2 == 1 && id < c.next
}

// wentAway lets the calls that the server still answers end; the others are made again elsewhere.
func (c *clientConn) wentAway(last uint32, code errCode, why string) {
	c.client.retire(c)
	c.out.mu.Lock()
	c.away = true
	var unseen []*stream
	for id, s := range c.streams {
		if id > last {
			unseen = append(unseen, s)
		}
	}
	c.out.mu.Unlock()
	err := fmt.Errorf("the server went away (code %d): %s", code, why)
	for _, s := range unseen {
		if c.forget(s) {
			s.in.abandon()
			s.owner.reset(codeRefused, err)
		}
	}
	c.closeWhenDone()
}

// closeWhenDone closes a connection that takes no new calls after the last one.
func (c *clientConn) closeWhenDone() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.away && len(c.streams) == 0 {
		c.nc.Close()
	}
}

// headersRead takes the headers or trailers of a response.
func (c *clientConn) headersRead(id uint32, s *stream, f *fields, end bool) error {
	if s == nil {
		if !c.mayBeOver(id) {
			return protocolError("headers on a stream that was never opened")
		}
		return nil
	}
	call := s.owner.(*clientCall) //nolint:forcetypeassert // nothing else opens streams here
	if f.tooLarge() {
		return c.breakStream(s, codeCancel, "the headers of a response are too large")
	}
	if !call.begun && !end && len(f.status) == 3 && f.status[0] == '1' {
		return nil // an interim response
	}
	if bad := call.take(f, end); bad != "" {
		return c.breakStream(s, codeProtocol, bad)
	}
	if end {
		call.finish()
	}
	return nil
}

// messageRead takes a message without the trailers that should follow it.
func (c *clientConn) messageRead(s *stream) error {
	return c.breakStream(s, codeProtocol, "server closed the stream without sending trailers")
}
