package grpch2

import (
	"encoding/binary"
	"slices"
	"time"
)

// maxRollbacks bounds the answered calls of a connection that can still be rolled back. A caller
// that cancels a call which has just been answered does so before many others are answered.
const maxRollbacks = 16

// rollbackTime is how long after the answer the end of a connection rolls a call back. A client
// that confirms later than that may be one that does not read between its calls. gRPC's libraries
// need not. A server finds a vanished client sooner; see Keepalive.
const rollbackTime = time.Minute

// A rollback takes back the effect of an answered call.
type rollback struct {
	id       uint32 // stream of the call
	answered time.Time
	fn       func()
}

// ReplyWithRollback is Reply for a call whose effect only its caller learns of, from the response:
// a session or a handle. If the caller does not receive the whole response, undo is called once, on
// a new goroutine that Server.Shutdown and Close wait for.
//
// The caller has not received it if it cancels the call, or if the connection ends first. A PING
// follows the response. The client answers it after it has read the response.
func (c *Call) ReplyWithRollback(o Outcome, undo func()) {
	c.conn.addRollback(c.id, undo)
	if c.Reply(o) != nil {
		c.conn.peerReset(c.id)
		return
	}
	c.conn.confirmDelivery(c.id)
}

func (c *serverConn) addRollback(id uint32, fn func()) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if len(c.rollbacks) == maxRollbacks {
		c.rollbacks = slices.Delete(c.rollbacks, 0, 1)
	}
	c.rollbacks = append(c.rollbacks, rollback{id, time.Now(), fn})
}

// confirmDelivery sends a PING after the response of a call, or rolls the call back if the
// connection has ended. The payload is the call's stream, which is never 0.
func (c *serverConn) confirmDelivery(id uint32) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.streams == nil {
		c.rollBackLocked(id)
		return
	}
	c.out.queue = appendFrame(c.out.queue, framePing, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(id)))
	c.out.flushDelayed()
}

// delivered drops the rollback of a call whose response the client has read.
func (c *serverConn) delivered(id uint64) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.rollbacks = slices.DeleteFunc(c.rollbacks, func(r rollback) bool { return uint64(r.id) == id })
}

// peerReset rolls a call back that was answered and then reset by the client. A client that has the
// whole response does not reset the stream, because the stream has ended.
func (c *serverConn) peerReset(id uint32) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.rollBackLocked(id)
}

// rollBackUnconfirmed rolls back, at the end of the connection, what was answered shortly before.
func (c *serverConn) rollBackUnconfirmed() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	for _, r := range c.rollbacks {
		if time.Since(r.answered) < rollbackTime {
			c.server.running.Go(r.fn)
		}
	}
	c.rollbacks = nil
}

// rollBackLocked rolls a call back, unless that has happened. The caller holds out.mu.
func (c *serverConn) rollBackLocked(id uint32) {
	at := slices.IndexFunc(c.rollbacks, func(r rollback) bool { return r.id == id })
	if at < 0 {
		return
	}
	fn := c.rollbacks[at].fn
	c.rollbacks = slices.Delete(c.rollbacks, at, at+1)
	c.server.running.Go(fn)
}
