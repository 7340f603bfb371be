package grpch2

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// A CallObserver is notified of calls. Its methods are called concurrently, on the goroutines that
// make and serve calls, and must not block.
type CallObserver interface {
	// CallBegan reports that a call is being served, or made. peer is what the server's Identify or
	// the client knows about the other end.
	CallBegan(method, peer string)
	// CallEnded reports the end of a call for which CallBegan was called. received and sent are the
	// sizes of its messages in bytes, without those that a stream has received.
	CallEnded(method, peer string, code uint32, received, sent int64, took time.Duration)
	// CallRefused reports a call that was answered without being served.
	CallRefused(method, peer string, code uint32)
}

// observed is what is noted about a call while it is served.
type observed struct {
	began    int64 // by mono.Nanos; 0 without an observer
	received int64 // bytes
	sent     int64 // bytes of messages that were sent with Send
}

// observeStart notifies the observer, and the tracer, that a call is served.
func (c *Call) observeStart() {
	if c.httpStatus != "" {
		return
	}
	if t := c.conn.server.Tracer; t != nil {
		c.ctx, c.endSpan = t.Served(c.ctx, c.path, c.caller.Name, c.traced)
	}
	if o := c.conn.server.Observer; o != nil {
		c.observed.began = mono.Nanos()
		if c.requests == nil {
			c.observed.received = c.in.size()
		}
		o.CallBegan(c.path, c.caller.Name)
	}
}

// observeEnd notifies the observer, and the tracer, that a call is answered.
func (c *Call) observeEnd(o *Outcome) {
	if c.endSpan != nil {
		c.endSpan(o.Code, o.Text)
	}
	if c.observed.began == 0 {
		return
	}
	took := time.Duration(mono.Nanos() - c.observed.began)
	sent := c.observed.sent + int64(size(o.Data))
	c.conn.server.Observer.CallEnded(c.path, c.caller.Name, o.Code, c.observed.received, sent, took)
}

// size returns the size of a message whose prefix has arrived, in bytes.
func (m *inboundMessage) size() int64 {
	if m.prefixLen < prefixSize {
		return 0
	}
	return int64(binary.BigEndian.Uint32(m.prefix[1:]))
}

// observation is what a client notes about a call that it makes. It is zero without an observer and
// a span.
type observation struct {
	began   int64                          // by mono.Nanos; 0 without an observer
	endSpan func(code uint32, text string) // nil without a span
}

// observe notifies the observer, and the tracer, that a call begins.
func (c *Client) observe(ctx context.Context, r *Request) (o observation) {
	o.endSpan = c.trace(ctx, r)
	if c.Observer != nil {
		o.began = mono.Nanos()
		c.Observer.CallBegan(r.Path, c.Peer)
	}
	return o
}

// observeEnd notifies the observer, and the tracer, that a call ended. call is nil if no connection
// was there for it.
func (c *Client) observeEnd(o observation, r *Request, call *clientCall, resp *Response) {
	if o.endSpan != nil {
		o.endSpan(resp.Code, resp.Text)
	}
	if o.began == 0 {
		return
	}
	took := time.Duration(mono.Nanos() - o.began)
	received := int64(0)
	if call != nil && resp.Code == codeOK {
		received = call.in.size()
	}
	c.Observer.CallEnded(r.Path, c.Peer, resp.Code, received, int64(size(r.Data)), took)
}
