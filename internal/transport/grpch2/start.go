package grpch2

import "context"

// Start makes a call and does not wait for its response. It calls done once. A well-formed response
// is delivered by the goroutine that reads the connection, so done must not block; any other
// outcome is delivered on a new goroutine. The data of the request must not change before done is
// called. Start may be called concurrently.
//
// The first call of Start gives the connection a dedicated reader for the rest of its life, so that
// callers need not wake one for each call.
func (c *Client) Start(ctx context.Context, r *Request, done func(Response)) {
	conn, _, _ := c.connOrAttempt(true)
	if conn == nil || ctx.Err() != nil {
		go func() { done(c.Call(ctx, r)) }()
		return
	}
	call := newClientCall(conn, r)
	call.ctx, call.callback = ctx, done
	call.observed = c.observe(ctx, r)
	c.calls.started.Add(1)
	if ctx.Done() != nil {
		call.stopCancel = context.AfterFunc(ctx, func() { call.cancel(ctx) })
	}
	call.deadline, _ = ctx.Deadline()
	conn.ensureReader()
	if err := call.send(); err != nil {
		call.fail(err)
	}
}

// deliver passes the response of a call made by Start to its callback.
func (c *clientCall) deliver() {
	if c.ctx.Err() == nil && c.stopCancel != nil {
		c.stopCancel()
	}
	if c.retryable && !c.probe && c.ctx.Err() == nil {
		c.conn.client.calls.failed.Add(1)
		_, resp := c.conn.client.tryCall(c.ctx, c.request)
		c.report(&resp)
		return
	}
	if c.response.Code == codeOK && c.in.compressed {
		c.decompress()
	}
	c.conn.client.calls.end(c.response.Code)
	c.report(&c.response)
}

// report passes a response to the observer and to the callback.
func (c *clientCall) report(resp *Response) {
	c.conn.client.observeEnd(c.observed, c.request, c, resp)
	c.callback(*resp)
}

// Flush writes the requests that were queued with MayDelay.
func (c *Client) Flush() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil && conn.out.pending() {
		conn.out.flush()
	}
}

// ensureReader starts the dedicated reader of the connection if no goroutine reads.
func (c *clientConn) ensureReader() {
	c.dedicatedReader.Store(true)
	if c.token.reacquire() {
		go c.runReader()
	}
}
