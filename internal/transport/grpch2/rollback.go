package grpch2

import "slices"

// maxRollbacks bounds the answered calls of a connection that can still be rolled back. A caller
// that cancels a call which has just been answered does so before many others are answered.
const maxRollbacks = 16

// A rollback takes back the effect of an answered call.
type rollback struct {
	id uint32 // stream of the call
	fn func()
}

// ReplyWithRollback is Reply for a call whose effect only its caller learns of, from the response:
// a session or a handle. If the caller cancels the call before it has received the whole response,
// undo is called once, on a new goroutine that Server.Shutdown and Close wait for.
func (c *Call) ReplyWithRollback(o Outcome, undo func()) {
	c.conn.addRollback(c.id, undo)
	if c.Reply(o) != nil {
		c.conn.peerReset(c.id)
	}
}

func (c *serverConn) addRollback(id uint32, fn func()) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if len(c.rollbacks) == maxRollbacks {
		c.rollbacks = slices.Delete(c.rollbacks, 0, 1)
	}
	c.rollbacks = append(c.rollbacks, rollback{id, fn})
}

// peerReset rolls a call back that was answered and then reset by the client. A client that has the
// whole response does not reset the stream, because the stream has ended.
func (c *serverConn) peerReset(id uint32) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	at := slices.IndexFunc(c.rollbacks, func(r rollback) bool { return r.id == id })
	if at < 0 {
		return
	}
	fn := c.rollbacks[at].fn
	c.rollbacks = slices.Delete(c.rollbacks, at, at+1)
	c.server.running.Go(fn)
}
