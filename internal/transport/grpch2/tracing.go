package grpch2

import "context"

// TraceHeaders are the headers of W3C Trace Context that name the span in which a call is made.
// They are empty without one.
type TraceHeaders struct {
	Parent string // traceparent
	State  string // tracestate
}

// A CallTracer makes spans of calls. Its methods are called concurrently, on the goroutines that
// make and serve calls, and must not block.
type CallTracer interface {
	// Served begins the span of a call that is served, as a child of what the headers name. The
	// call is served with the returned context. end is called once; it is nil for a call without a
	// span.
	Served(ctx context.Context, method, peer string, from TraceHeaders) (served context.Context, end func(code uint32, text string))
	// Called begins the span of a call that is made, as a child of that in ctx, and returns the
	// headers that name it. end is called once; it is nil for a call without a span.
	Called(ctx context.Context, method, peer string) (to TraceHeaders, end func(code uint32, text string))
}

// append appends the headers that are not empty.
func (t TraceHeaders) append(b []byte) []byte {
	if t.Parent == "" {
		return b
	}
	b = appendField(b, "traceparent", t.Parent)
	if t.State != "" {
		b = appendField(b, "tracestate", t.State)
	}
	return b
}

// trace begins the span of a call that is made, which the request names to the server. The result
// is nil for a call without a span.
func (c *Client) trace(ctx context.Context, r *Request) (end func(code uint32, text string)) {
	if c.Tracer == nil {
		return nil
	}
	r.traced, end = c.Tracer.Called(ctx, r.Path, c.Peer)
	return end
}
