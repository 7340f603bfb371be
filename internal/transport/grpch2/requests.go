package grpch2

import (
	"io"
	"sync"
)

const (
	// maxQueuedRequests bounds the requests of a stream that have arrived and wait to be served.
	maxQueuedRequests = 1 << 18
	// windowStep is the number of bytes that a stream takes before the client may send as many
	// more. It saves most WINDOW_UPDATE frames.
	windowStep = 1 << 20
)

// requestQueue holds the requests of a stream in the order of their arrival.
//
// The reader of the connection adds them and the handler takes them, so a handler that is slow does
// not hold up the other calls of the connection. The window of the stream bounds the bytes that
// wait: it grows only when the handler takes a request.
type requestQueue struct {
	changed chan struct{} // receives a value when items or ended has changed

	mu     sync.Mutex
	items  []queuedRequest // guarded by mu
	bytes  int64           // size of items with their prefixes; guarded by mu
	ended  bool            // the client sends no more; guarded by mu
	closed bool            // the handler takes no more; guarded by mu
	unsent int64           // bytes taken since the last WINDOW_UPDATE; used by the handler
}

type queuedRequest struct {
	body       Body
	compressed bool
	size       int64 // bytes with the prefix
}

func newRequestQueue() *requestQueue { return &requestQueue{changed: make(chan struct{}, 1)} }

func (q *requestQueue) notify() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// add appends a request. It takes over the body.
func (q *requestQueue) add(r queuedRequest) *callError {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		r.body.Discard()
		return nil
	case q.bytes+r.size > ownWindow:
		r.body.Discard()
		return &callError{code: codeInternalError, text: "a stream has more data than its window"}
	case len(q.items) >= maxQueuedRequests:
		r.body.Discard()
		return &callError{code: codeResourceExhausted, text: "too many requests of a stream wait to be served"}
	}
	q.items = append(q.items, r)
	q.bytes += r.size
	q.notify()
	return nil
}

// end records that the client sends no more.
func (q *requestQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.notify()
}

// take removes the oldest request. Without one, ok is false, and ended tells whether none will
// come.
func (q *requestQueue) take() (r queuedRequest, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return r, false, q.ended
	}
	r = q.items[0]
	q.items[0] = queuedRequest{}
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil
	}
	q.bytes -= r.size
	return r, true, false
}

// close discards the requests that wait and all that follow.
func (q *requestQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, r := range q.items {
		r.body.Discard()
	}
	q.items, q.bytes = nil, 0
}

// Next returns the next request of a call whose method is Streaming, and waits for it. It returns
// io.EOF after the last one, and another error if the call has ended: its caller has cancelled it,
// the connection has ended, or a request was invalid. The body belongs to the handler.
func (c *Call) Next() (Body, error) {
	for {
		r, ok, ended := c.requests.take()
		switch {
		case ok:
			c.extendWindow(r.size)
			if !r.compressed {
				return r.body, nil
			}
			return c.decompressed(r.body)
		case ended:
			return nil, io.EOF
		}
		select {
		case <-c.requests.changed:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// extendWindow lets the client send n bytes more.
func (c *Call) extendWindow(n int64) {
	q := c.requests
	if q.unsent += n; q.unsent < windowStep {
		return
	}
	n, q.unsent = q.unsent, 0
	c.conn.out.mu.Lock()
	ended := c.flow.ended || c.requestEnded
	c.conn.out.mu.Unlock()
	if ended {
		return
	}
	// a write error also ends the reader
	_ = c.conn.out.queueControl(appendUint32Frame(nil, frameWindowUpdate, c.id, uint32(n)))
	c.conn.out.flush()
}

// startStream serves a call whose method is Streaming from its first frame on.
func (c *serverConn) startStream(call *Call) {
	c.in.r.poller.streams = true
	call.requests = newRequestQueue()
	call.in.queue = call.requests
	call.observeStart()
	c.out.mu.Lock()
	call.started = true
	c.out.mu.Unlock()
	c.server.running.Add(1)
	c.server.dispatch(job{call, false})
}

// streamRead is called after data of a stream, or its end, was read.
func (c *serverConn) streamRead(call *Call, end bool) error {
	partial := call.in.prefixLen > 0
	c.out.mu.Lock()
	// the limit of an incomplete request applies to the last request that has begun
	call.started = !partial
	c.out.mu.Unlock()
	switch {
	case end && partial:
		if c.removeStream(&call.stream) {
			call.in.abandon()
			call.abort(codeInternalError, "a request without a whole message", codeNone)
		}
	case end:
		call.requests.end()
	}
	return nil
}
