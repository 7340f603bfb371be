package grpch2

import (
	"context"
	"errors"
	"net"
	"time"
)

// A SecureConn is a connection that starts with a handshake of its own, as that of TLS.
type SecureConn interface {
	net.Conn
	Handshake(ctx context.Context) error
	// Buffered reports whether Read may return bytes that have left the socket already.
	Buffered() bool
	// WriteBuffers writes buffers in their order.
	WriteBuffers(v net.Buffers) error
	// OnRetire sets the function that is called when the connection should end after its present
	// calls.
	OnRetire(f func(why string))
	// Plain returns the connection below.
	Plain() net.Conn
}

// secureHandshake makes the handshake of a SecureConn, until the deadline.
func (c *serverConn) secureHandshake(deadline time.Time) error {
	secure, ok := c.nc.(SecureConn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := secure.Handshake(ctx)
	if err == nil {
		secure.OnRetire(c.retire)
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := ""
	if c.server.Refused != nil {
		why = c.server.Refused(c.nc, err)
	}
	if why != "" {
		plain := secure.Plain()
		_ = plain.SetDeadline(time.Now().Add(goAwayTimeout)) // the write reports the error
		frames := appendOwnSettings(nil, true, 0)
		if _, e := plain.Write(append(frames, goAway(0, codeInadequateSecurity, why)...)); e == nil {
			_, _ = plain.Read(make([]byte, 512)) // data that is not read would discard the GOAWAY
		}
	}
	return errors.Join(errRefused, err)
}

// errRefused is the error of a connection whose handshake has failed.
var errRefused = errors.New("http2: the connection was not secured")

// retire makes the client use another connection for its next calls.
func (c *serverConn) retire(why string) {
	if c.retiring.Swap(true) {
		return
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if !c.server.stopping {
		c.server.running.Go(func() { c.drain(codeNone, why) })
	}
}

// retireWhenSecure makes new calls use another connection when a certificate of this one ends.
func (c *clientConn) retireWhenSecure() {
	secure, ok := c.nc.(SecureConn)
	if !ok {
		return
	}
	secure.OnRetire(func(string) {
		c.client.retire(c)
		c.out.mu.Lock()
		c.goingAway = true
		c.out.mu.Unlock()
		c.closeWhenDone()
	})
}
