package grpch2

import "context"

// Start makes a call without waiting for its response. Done is called once: with a response that
// came in good order by the goroutine that reads the connection, which it must not keep from
// reading, otherwise on a goroutine of its own. The data of the request must stay as it is until
// then.
//
// A connection with such calls has a goroutine that reads it as long as it lives: who calls need
// not wake one for each.
func (c *Client) Start(ctx context.Context, r *Request, done func(Response)) {
	conn, _, _ := c.look(true)
	if conn == nil || ctx.Err() != nil {
		go func() { done(c.Call(ctx, r)) }()
		return
	}
	call := newClientCall(conn, r)
	call.ctx, call.then = ctx, done
	if ctx.Done() != nil {
		call.unwatch = context.AfterFunc(ctx, func() { call.giveUp(ctx) })
	}
	call.deadline, _ = ctx.Deadline()
	conn.attend()
	if err := call.send(); err != nil {
		call.fail(err)
	}
}

// conclude passes the response of a call that nobody waits for on.
func (c *clientCall) conclude() {
	if c.ctx.Err() == nil && c.unwatch != nil {
		c.unwatch()
	}
	if c.unseen && c.ctx.Err() == nil {
		c.then(c.conn.client.Call(c.ctx, c.request))
		return
	}
	if c.response.Code == codeOK && c.in.compressed {
		c.decompress()
	}
	c.then(c.response)
}

// Flush writes the requests that wait for others.
func (c *Client) Flush() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil && conn.out.pending() {
		conn.out.drain()
	}
}

// attend makes sure that a goroutine reads the connection, from now on for ever.
func (c *clientConn) attend() {
	c.attended.Store(true)
	if c.turn.back() {
		go c.readOn()
	}
}
