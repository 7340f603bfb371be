package grpch2

import (
	"fmt"
	"strings"
	"time"
)

const (
	// pingTick is how often a client looks at a connection with open calls.
	pingTick = 10 * time.Second
	// pingTimeout is how long nothing may arrive after a PING, in ticks.
	pingTimeout = 2
	// strangerInterval is the interval of PINGs to servers other than Weft, in ticks. gRPC's C++
	// library, which TensorFlow uses, takes more than one in 5 minutes for an attack.
	strangerInterval = 31
)

// settingWeft tells a client that the server is Weft, which answers any number of PINGs. The server
// sends it to clients of Weft only, because old clients of TensorFlow log unknown settings.
const settingWeft settingID = 0x5746

// A keepalive detects that the server of a connection has vanished: a host or a process behind a
// proxy, which keeps the TCP connection alive. TCP detects the other cases.
//
// While calls are open, a timer looks at the connection at every tick. If nothing has arrived since
// the last tick, it sends a PING; if nothing arrives for pingTimeout after that, it ends the
// connection. The fields are guarded by out.mu.
type keepalive struct {
	timer   *time.Timer // calls tick; nil before the first call
	running bool        // the timer runs
	reads   uint32      // source.reads at the last tick
	silent  int         // ticks without data after the last PING; -1 if no PING is unanswered
	since   int         // ticks since the last PING, at least strangerInterval before the first
}

// startKeepalive arms the timer. The caller holds out.mu.
func (c *clientConn) startKeepalive() {
	k := &c.alive
	if k.running {
		return
	}
	k.running, k.silent, k.reads = true, -1, c.in.r.reads.Load()
	if k.timer == nil {
		k.since = strangerInterval
		k.timer = time.AfterFunc(pingTick, c.keepaliveTick)
	} else {
		k.timer.Reset(pingTick)
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

// keepaliveTick sends a PING, or ends the connection, if nothing arrives. It stops the timer while
// no call is open.
func (c *clientConn) keepaliveTick() {
	k := &c.alive
	c.out.mu.Lock()
	k.since++
	reads := c.in.r.reads.Load()
	quiet := reads == k.reads
	k.reads = reads
	ping, dead := false, false
	switch {
	case c.out.err != nil || len(c.streams) == 0:
		k.running = false
		c.out.mu.Unlock()
		return
	case !quiet:
		k.silent = -1
	case k.silent >= 0:
		k.silent++
		dead = k.silent >= pingTimeout
	case c.out.peer.weft || k.since >= strangerInterval:
		k.silent, k.since, ping = 0, 0, true
	}
	k.timer.Reset(pingTick)
	c.out.mu.Unlock()
	switch {
	case dead:
		err := fmt.Errorf("the server has not answered a PING for %v: the connection is dead", pingTimeout*pingTick)
		c.failure.CompareAndSwap(nil, &err)
		c.nc.Close() // the reader shuts the connection down
	case ping:
		// the reader reports errors
		_ = c.out.queueControl(appendFrame(nil, framePing, 0, 0, make([]byte, 8)))
		c.out.flush()
	}
}

// announceWeft tells a client of Weft that the server is Weft.
func (c *serverConn) announceWeft(userAgent string) error {
	if c.announced || !strings.HasPrefix(userAgent, UserAgent) {
		return nil
	}
	c.announced = true
	return c.out.queueControl(appendFrame(nil, frameSettings, 0, 0, appendSetting(nil, settingWeft, 1)))
}
