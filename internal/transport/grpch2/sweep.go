package grpch2

import (
	"cmp"
	"fmt"
	"time"
)

// sweepParts is the number of sweeps within the shortest time-out.
const sweepParts = 4

// A watch is what the sweep of a server remembers about a connection. A count is the number of
// sweeps that have found the same state. The sweep uses it, and guards idle by out.mu.
type watch struct {
	frame      uint32 // making.seq
	frameCount int
	write      uint32 // output.writes
	writeCount int
	idle       int    // sweeps without a stream; guarded by out.mu
	last       uint32 // newest stream that was served; guarded by out.mu
	silence    silence
}

// startSweep arms the timer of the sweep. The caller holds s.mu.
//
// The simple design sets a deadline or a timer for each connection, request and response. Each
// costs a call a change of a timer. One timer for all connections of the server costs nothing per
// call: the sweep counts how often it has found a connection or stream in the same state.
func (s *Server) startSweep() {
	l := &s.Limits
	shortest := time.Duration(0)
	for _, d := range []time.Duration{l.Frame, l.Idle, l.Request, l.Response, l.Keepalive.Interval * 2} {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	if shortest == 0 || s.sweeping || s.stopping {
		return
	}
	s.sweeping, s.sweepTick = true, max(shortest/sweepParts, time.Millisecond)
	if s.sweepTimer == nil {
		s.sweepTimer = time.AfterFunc(s.sweepTick, s.sweep)
	} else {
		s.sweepTimer.Reset(s.sweepTick)
	}
}

// sweep looks at all connections. It ends while there are none.
func (s *Server) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || len(s.conns) == 0 {
		s.sweeping = false
		return
	}
	for c := range s.conns {
		c.sweep()
	}
	s.sweepTimer.Reset(s.sweepTick)
}

// over reports whether a state that was found in count sweeps after the first has lasted for d.
func (s *Server) over(count int, d time.Duration) bool {
	return d > 0 && time.Duration(count)*s.sweepTick >= d
}

// sweep ends what has made no progress for too long.
func (c *serverConn) sweep() {
	s, w := c.server, &c.watch
	seq := c.in.r.making.seq.Load()
	progress := seq != 0 && seq != w.frame // bytes of an incomplete frame arrive
	if seq == 0 || seq != w.frame {
		w.frame, w.frameCount = seq, 0
	} else if w.frameCount++; s.over(w.frameCount, s.Limits.Frame) {
		c.cut(LimitFrame, "a frame or header block is incomplete for too long", s.Limits.Frame)
		return
	}
	c.out.mu.Lock()
	stuck := c.out.writing && c.out.writes == w.write
	if w.write = c.out.writes; !stuck {
		w.writeCount = 0
	} else {
		w.writeCount++
	}
	retire, busy := false, len(c.streams) > 0
	if busy || c.task.Load() {
		w.idle = 0
	} else {
		w.idle++
		retire = s.over(w.idle, s.Limits.Idle) && c.activeCalls.Load() == 0
	}
	late, last := c.lateCalls(progress), w.last
	c.out.mu.Unlock()
	if c.checkSilence(busy) {
		return
	}
	switch {
	case s.over(w.writeCount, s.Limits.Response):
		c.cut(LimitResponse, "the client takes no data", s.Limits.Response)
	case retire && c.retiring.Swap(true): // it has not answered PING since the last sweep
		s.running.Go(func() { c.closeIdle(last) })
	case retire:
		s.hit(LimitIdle)
		why := LimitIdle.text("the connection had no stream for too long", s.Limits.Idle)
		s.running.Go(func() { c.drain(codeNone, why) })
	case len(late) > 0:
		s.running.Go(func() {
			for _, l := range late {
				l.call.end(l.limit)
			}
			c.out.flush()
		})
	}
}

// lateCall is a call that has reached a limit of time.
type lateCall struct {
	call  *Call
	limit Limit
}

// lateCalls returns the calls whose request does not arrive, or whose response is not taken. With
// progress, bytes of one of the incomplete requests have arrived. The caller holds out.mu.
func (c *serverConn) lateCalls(progress bool) (late []lateCall) {
	l := &c.server.Limits
	for _, s := range c.streams {
		call := s.owner.(*Call) //nolint:forcetypeassert // nothing else opens streams here
		switch {
		case s.flow.sending:
			s.flow.sweeps++
			if c.server.over(s.flow.sweeps, l.Response) || call.ctx.Err() != nil {
				late = append(late, lateCall{call, LimitResponse})
			}
		case progress:
			s.sweeps = 0
		case !call.requestEnded && !call.started:
			if s.sweeps++; c.server.over(s.sweeps, l.Request) {
				late = append(late, lateCall{call, LimitRequest})
			}
		}
	}
	return late
}

// end ends a call that has reached a limit of time.
func (c *Call) end(l Limit) {
	if !c.conn.removeStream(&c.stream) {
		return
	}
	c.in.abandon()
	c.conn.server.hit(l)
	if l == LimitRequest {
		text := l.text("the rest of the request has not arrived", c.conn.server.Limits.Request)
		c.abort(codeResourceExhausted, text, codeEnhanceYourCalm)
	} else {
		_ = c.conn.out.queueControl(appendUint32Frame(nil, frameReset, c.id, uint32(codeEnhanceYourCalm)))
		c.cancel()
	}
	c.conn.closeWhenDrained()
}

// closeIdle closes a connection whose client does not read while it makes no calls. GOAWAY makes
// the client repeat a call that it makes at this moment.
func (c *serverConn) closeIdle(last uint32) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(goAwayTimeout)) // see sendGoAway
	_ = c.out.queueControl(goAway(last, codeNone, "the connection was idle"))
	c.out.flushAndWait()
	c.nc.Close()
}

// cut ends a connection whose client has reached a limit.
func (c *serverConn) cut(l Limit, what string, value any) {
	c.server.hit(l)
	c.server.log.Warn("a connection was ended", "peer", c.nc.RemoteAddr(), "why", l.text(what, value))
	c.server.running.Go(func() {
		_ = c.nc.SetWriteDeadline(time.Now().Add(goAwayTimeout)) // see sendGoAway
		_ = c.out.queueControl(goAway(maxStreamID, codeEnhanceYourCalm, l.text(what, value)))
		c.out.flushAndWait()
		c.nc.Close()
	})
}

// handshakeError returns the error of a client that has not completed its handshake in time.
func (c *serverConn) handshakeError(err error) error {
	if t, ok := err.(interface{ Timeout() bool }); !ok || !t.Timeout() {
		return err
	}
	c.server.hit(LimitHandshake)
	limit := cmp.Or(c.server.Limits.Handshake, handshakeTimeout)
	return &connError{codeEnhanceYourCalm, LimitHandshake.text(fmt.Sprintf("no HTTP/2 handshake from %v", c.nc.RemoteAddr()), limit)}
}
