package grpch2

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Keepalive tells how the end of a connection detects that the other end has vanished: a host, or a
// process behind a proxy that keeps the TCP connection alive.
type Keepalive struct {
	// Interval is how long nothing may arrive while calls wait, before a sign of life is asked for.
	// An idle connection is asked after idleFactor times that. 0 turns the detection off.
	Interval time.Duration
	// Timeout is how long nothing may arrive after the question.
	Timeout time.Duration
}

// DefaultKeepalive are the times that clients use by default.
var DefaultKeepalive = Keepalive{Interval: 10 * time.Second, Timeout: 20 * time.Second}

const (
	// idleFactor is the ratio of the intervals of idle and busy connections.
	idleFactor = 6
	// freePings is the number of PINGs that a client sends to a server other than Weft without
	// waiting for strangerPause. gRPC's C++ library, which TensorFlow uses, closes a connection at
	// the fourth PING that follows no response.
	freePings = 2
	// strangerPause is the pause before further PINGs. gRPC's C++ library takes more than one in 5
	// minutes for an attack.
	strangerPause = 310 * time.Second
	// probePath is a method that no server has. A server answers UNIMPLEMENTED, without the
	// goroutines or threads that run steps, and however often a client asks.
	probePath = "/weft.Keepalive/Probe"
)

// settingWeft tells a client that the server is Weft, which answers any number of PINGs. The server
// sends it to clients of Weft only, because old clients of TensorFlow log unknown settings.
const settingWeft settingID = 0x5746

// A keepalive is the detection of a vanished server.
//
// A timer looks at the connection at every interval. If nothing has arrived since the last tick,
// the client asks: Weft by PING, another server by a call of probePath. If nothing arrives for the
// timeout after a PING, it ends the connection. If nothing arrives after the probe, the client
// confirms by PING, as far as that does not make the server end the connection.
//
// The connection to Weft is looked at while it is idle, too. The PINGs then tell the server that
// this client is alive. The fields are guarded by out.mu, except for answers.
type keepalive struct {
	timer    *time.Timer   // calls tick; nil before the first call
	running  bool          // the timer runs
	idle     bool          // the timer runs with the interval of an idle connection
	reads    uint32        // source.reads at the last tick
	asked    question      // what is unanswered
	askedAt  time.Time     // time of the question
	probing  bool          // the call of a probe is open
	pings    int           // PINGs since the last answer of a call
	pingedAt time.Time     // time of the last PING
	answered uint32        // answers at the last tick
	answers  atomic.Uint32 // calls that the server has answered
}

// A question is what the client sends to a silent server.
type question int

const (
	askedNothing question = iota
	askedProbe
	askedPing
)

// startKeepalive arms the timer. The caller holds out.mu.
func (c *clientConn) startKeepalive() {
	k, interval := &c.alive, c.client.Keepalive.Interval
	if k.running && !k.idle || interval <= 0 {
		return
	}
	k.running, k.idle, k.asked, k.reads = true, false, askedNothing, c.in.r.reads.Load()
	if k.timer == nil {
		k.timer = time.AfterFunc(interval, c.keepaliveTick)
	} else {
		k.timer.Reset(interval)
	}
}

// stopKeepalive stops the timer at the end of the connection.
func (c *clientConn) stopKeepalive() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.alive.timer != nil {
		c.alive.timer.Stop()
	}
}

// keepaliveTick asks for a sign of life, or ends the connection, if nothing arrives.
func (c *clientConn) keepaliveTick() {
	k, times := &c.alive, c.client.Keepalive
	c.out.mu.Lock()
	open := len(c.streams)
	if k.probing {
		open--
	}
	if c.out.err != nil || open <= 0 && !c.out.peer.weft {
		k.running = false
		c.out.mu.Unlock()
		return
	}
	ask, dead := k.next(c.in.r.reads.Load(), c.out.peer.weft, times.Timeout)
	k.idle = open <= 0 && k.asked == askedNothing
	next := times.Interval
	if k.idle {
		next *= idleFactor
	}
	k.timer.Reset(next)
	c.out.mu.Unlock()
	switch {
	case dead:
		err := fmt.Errorf("the server has not answered a PING for %v: the connection is dead", times.Timeout)
		c.failure.CompareAndSwap(nil, &err)
		c.nc.Close() // the reader shuts the connection down
	case ask == askedProbe:
		c.probe()
	case ask == askedPing:
		// the reader reports errors
		_ = c.out.queueControl(appendFrame(nil, framePing, 0, 0, make([]byte, 8)))
		c.out.flush()
	}
	if (dead || ask == askedPing) && open <= 0 && c.token.reacquire() {
		go c.runReader() // no caller reads
	}
}

// next returns what to ask at a tick, or that the server is dead.
func (k *keepalive) next(reads uint32, weft bool, timeout time.Duration) (ask question, dead bool) {
	now := time.Now()
	if answered := k.answers.Load(); answered != k.answered {
		k.answered, k.pings = answered, 0
	}
	quiet := reads == k.reads
	k.reads = reads
	switch {
	case !quiet:
		k.asked = askedNothing
		return askedNothing, false
	case k.asked == askedPing:
		return askedNothing, now.Sub(k.askedAt) >= timeout
	case k.asked == askedProbe && now.Sub(k.askedAt) < timeout:
		return askedNothing, false
	case weft, k.probing && (k.pings < freePings || now.Sub(k.pingedAt) >= strangerPause):
		ask, k.pingedAt = askedPing, now
		k.pings++
	case !k.probing:
		ask, k.probing = askedProbe, true
	default:
		return askedNothing, false
	}
	k.asked, k.askedAt = ask, now
	return ask, false
}

// probe calls a method that the server does not have.
func (c *clientConn) probe() {
	call := newClientCall(c, &Request{Path: probePath, NewBody: func(n int) Body { return NewChunks(n) }})
	call.ctx, call.probe = c.client.ctx, true
	call.callback = func(Response) {
		c.out.mu.Lock()
		c.alive.probing = false
		c.out.mu.Unlock()
	}
	if err := call.send(); err != nil {
		call.fail(err)
	}
}

// announceWeft tells a client of Weft that the server is Weft.
func (c *serverConn) announceWeft(userAgent string) error {
	if c.announced || !strings.HasPrefix(userAgent, UserAgent) {
		return nil
	}
	c.announced = true
	c.weft.Store(true)
	return c.out.queueControl(appendFrame(nil, frameSettings, 0, 0, appendSetting(nil, settingWeft, 1)))
}

// clientState is what decides how a server watches a client.
type clientState struct {
	busy  bool // a call is open
	task  bool // the client has called a method for tasks
	weft  bool // the client is Weft
	pings bool // the client has sent a PING
}

// A silence is what the sweep of a server remembers about the silence of a client. The sweep uses
// it.
type silence struct {
	reads  uint32    // source.reads at the last sweep
	since  time.Time // time of the last sweep that found new data
	pinged time.Time // time of an unanswered PING; zero if there is none
}

// next returns whether to send a PING now, or that the client is dead.
//
// A client that has open calls reads. Idle connections of clients that are no tasks are not asked,
// because gRPC's libraries need not read them; Limits.Idle closes them. Neither are idle clients of
// Weft, which send PINGs themselves; those that never have belong to an earlier version.
func (s *silence) next(now time.Time, reads uint32, k Keepalive, is clientState) (ping, dead bool) {
	if k.Interval <= 0 || reads != s.reads || s.since.IsZero() {
		s.reads, s.since, s.pinged = reads, now, time.Time{}
		return false, false
	}
	quiet := now.Sub(s.since)
	switch {
	case !is.busy && is.weft:
		return false, is.pings && quiet >= idleFactor*k.Interval+2*k.Interval+k.Timeout
	case !is.busy && !is.task:
		s.since, s.pinged = now, time.Time{}
		return false, false
	case !s.pinged.IsZero():
		return false, now.Sub(s.pinged) >= k.Timeout
	case is.busy && quiet >= k.Interval || quiet >= idleFactor*k.Interval:
		s.pinged = now
		return true, false
	}
	return false, false
}

// checkSilence asks a client for a sign of life, or ends its connection, if nothing arrives. It
// reports whether it has ended the connection.
func (c *serverConn) checkSilence(busy bool) (dead bool) {
	k := c.server.Limits.Keepalive
	is := clientState{busy: busy, task: c.task.Load(), weft: c.weft.Load(), pings: c.pinged.Load()}
	ping, dead := c.watch.silence.next(time.Now(), c.in.r.reads.Load(), k, is)
	switch {
	case dead:
		c.server.hit(LimitKeepalive)
		c.server.log.Warn("a connection was ended", "peer", c.nc.RemoteAddr(),
			"why", LimitKeepalive.text("the client does not answer", k.Timeout))
		c.nc.Close()
	case ping:
		c.server.running.Go(func() {
			// the reader reports errors
			_ = c.out.queueControl(appendFrame(nil, framePing, 0, 0, make([]byte, 8)))
			c.out.flush()
		})
	}
	return dead
}
