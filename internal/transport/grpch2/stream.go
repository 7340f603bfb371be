package grpch2

// Send answers with a message to which others may follow: the last word is that of Reply, with an
// error. It waits until the client takes the message, which must be small. An error says that the
// caller is gone; Reply must be called all the same.
func (c *Call) Send(message []byte) error {
	o := &c.conn.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.start(&c.stream, c); err != nil {
		return err
	}
	data := prefixed(0, [][]byte{message})
	n := size(data)
	for int64(n) > min(o.window, c.flow.window) {
		o.changed.Wait()
		if err := o.state(&c.flow); err != nil {
			return err
		}
	}
	if !c.streaming {
		o.queue = c.appendHead(o.queue)
		c.streaming = true
		c.conn.serving.Add(-1) // others do not come meanwhile, but as long as it lasts
	}
	o.window -= int64(n)
	c.flow.window -= int64(n)
	o.queue = appendFrameHeader(o.queue, n, frameData, 0, c.id)
	for _, b := range data {
		o.queue = append(o.queue, b...)
	}
	o.flush()
	return o.err
}
