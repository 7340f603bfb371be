package grpch2

// Send sends one message of a response that has several. Reply ends the response, with an error
// code.
//
// Send blocks until the flow-control windows of the client have room for the message, which must be
// smaller than the initial window. An error reports that the client has cancelled the call or the
// connection has ended; Reply must be called nevertheless. The message may be reused when Send
// returns.
func (c *Call) Send(message []byte) error {
	o := &c.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.waitStart(&c.stream, c); err != nil {
		return err
	}
	data := prefixed(0, [][]byte{message})
	n := size(data)
	c.flow.sending, c.flow.sweeps = true, 0
	defer func() { c.flow.sending = false }()
	for int64(n) > min(o.window, c.flow.window) {
		o.changed.Wait()
		if err := o.check(&c.flow); err != nil {
			return err
		}
	}
	if !c.streaming {
		o.queue = c.appendHeaderFrames(o.queue)
		c.streaming = true
		c.conn.activeCalls.Add(-1) // a stream of messages does not make other calls concurrent
	}
	o.window -= int64(n)
	c.flow.window -= int64(n)
	o.queue = appendFrameHeader(o.queue, n, frameData, 0, c.id)
	for _, b := range data {
		o.queue = append(o.queue, b...)
	}
	o.flushLocked()
	return o.err
}
