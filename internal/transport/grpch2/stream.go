package grpch2

// Send sends one message of a response that has several. Reply ends the response, with an error
// code, or without one if the method is Streaming.
//
// Send blocks until the flow-control windows of the client have room for the message. An error
// reports that the client has cancelled the call or the connection has ended; Reply must be called
// nevertheless. The message may be reused when Send returns.
func (c *Call) Send(message ...[]byte) error {
	o := &c.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.waitStart(&c.stream, c); err != nil {
		return err
	}
	if c.observed.began != 0 {
		c.observed.sent += int64(size(message))
	}
	rest := splitter{data: prefixed(0, message)}
	c.flow.sending, c.flow.sweeps = true, 0
	defer func() { c.flow.sending = false }()
	for left := size(rest.data); left > 0; {
		for min(o.window, c.flow.window) <= 0 || len(o.queue) > queueLimit {
			o.flushLocked()
			if err := o.check(&c.flow); err != nil {
				return err
			}
			if min(o.window, c.flow.window) <= 0 || len(o.queue) > queueLimit {
				o.changed.Wait()
			}
		}
		if err := o.check(&c.flow); err != nil {
			return err
		}
		if !c.streaming {
			o.queue = c.appendHeaderFrames(o.queue)
			c.streaming = true
			if c.requests == nil {
				// a stream of messages does not make other calls concurrent
				c.conn.activeCalls.Add(-1)
			}
		}
		n := int(min(int64(left), o.window, c.flow.window, int64(min(o.peer.frame, ownMaxFrame))))
		left -= n
		o.window -= int64(n)
		c.flow.window -= int64(n)
		o.queue = appendFrameHeader(o.queue, n, frameData, 0, c.id)
		for _, b := range rest.take(nil, n) {
			o.queue = append(o.queue, b...)
		}
	}
	o.flushLocked()
	return o.err
}
