package grpch2

import "slices"

// maxUndos is for how many calls a connection knows how to undo what they have made. Who gives up a
// call that has just been answered says so before many others.
const maxUndos = 16

// undo takes back what a call has made.
type undo struct {
	id   uint32 // of the stream
	what func()
}

// ReplyOr is Reply for a call that has made something of which only its caller learns, from the
// answer. If the caller gives the call up before it has all of the answer, undo is called, on a
// goroutine of its own.
func (c *Call) ReplyWithRollback(o Outcome, undo func()) {
	c.conn.remember(c.id, undo)
	if c.Reply(o) != nil {
		c.conn.givenUp(c.id)
	}
}

func (c *serverConn) remember(id uint32, what func()) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if len(c.undos) == maxUndos {
		c.undos = slices.Delete(c.undos, 0, 1)
	}
	c.undos = append(c.undos, undo{id, what})
}

// givenUp undoes a call that has been answered, if that is known how and has not been done. A
// client that has the whole of an answer does not reset its stream, which is over.
func (c *serverConn) givenUp(id uint32) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	at := slices.IndexFunc(c.undos, func(u undo) bool { return u.id == id })
	if at < 0 {
		return
	}
	what := c.undos[at].what
	c.undos = slices.Delete(c.undos, at, at+1)
	c.server.running.Go(what)
}
