// Package connlimit bounds the connections that a process accepts for protocols other than gRPC,
// such as HTTP, with the limits and the error texts of package grpch2.
package connlimit

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/refusal"
)

// logInterval is the time between two lines of the log about refused connections.
const logInterval = time.Minute

// A Limiter counts connections. It may be used concurrently. Its exported fields must not change
// once it is used.
type Limiter struct {
	// Limits has the limits of connections, and of those from one address.
	Limits grpch2.Limits
	// Descriptors is the number of file descriptors that a connection takes.
	Descriptors int
	// Refusal returns what a client is sent before its connection is closed.
	Refusal func(why string) []byte
	Log     *slog.Logger

	refusals refusal.Set

	mu        sync.Mutex
	open      int                       // admitted connections; guarded by mu
	byAddress map[netip.Addr]int        // the same, by their addresses; guarded by mu
	hits      map[grpch2.Limit]uint64   // how often each limit was reached; guarded by mu
	logged    map[grpch2.Limit]lastLine // guarded by mu
}

// lastLine is the last line of the log about a limit.
type lastLine struct {
	at   time.Time
	hits uint64
}

// Admit counts a connection, which the caller may use until it calls release. At a limit, release
// is nil: the client receives the reason, and the connection is closed.
func (l *Limiter) Admit(nc net.Conn) (release func()) {
	ip := remoteIP(nc)
	l.mu.Lock()
	defer l.mu.Unlock()
	limit, why := l.Limits.RefuseConnection(l.open, l.byAddress[ip], max(1, l.Descriptors))
	if why != "" {
		l.refuseLocked(nc, limit, why)
		return nil
	}
	if l.byAddress == nil {
		l.byAddress = map[netip.Addr]int{}
	}
	l.open++
	l.byAddress[ip]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		if l.byAddress[ip]--; l.byAddress[ip] == 0 {
			delete(l.byAddress, ip)
		}
	})
}

// remoteIP returns the IP address of a client, or the zero Addr.
func remoteIP(nc net.Conn) netip.Addr {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

func (l *Limiter) refuseLocked(nc net.Conn, limit grpch2.Limit, why string) {
	if l.hits == nil {
		l.hits, l.logged = map[grpch2.Limit]uint64{}, map[grpch2.Limit]lastLine{}
	}
	l.hits[limit]++
	if last, now := l.logged[limit], time.Now(); last.hits == 0 || now.Sub(last.at) >= logInterval {
		l.Log.Warn("connections are refused", "why", why, "peer", nc.RemoteAddr(), "refused", l.hits[limit]-last.hits)
		l.logged[limit] = lastLine{now, l.hits[limit]}
	}
	l.refusals.Refuse(nc, l.Refusal(why))
}

// Limited returns how often clients have reached each limit, by its name.
func (l *Limiter) Limited() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]uint64{}
	for limit, n := range l.hits {
		out[limit.String()] = n
	}
	return out
}

// Close ends the refusals that are under way and waits for them.
func (l *Limiter) Close() { l.refusals.Close() }

// Listener returns a listener whose connections count until they are closed.
func (l *Limiter) Listener(of net.Listener) net.Listener { return &listener{of, l} }

type listener struct {
	net.Listener
	limiter *Limiter
}

// Accept returns the next connection that is within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if release := l.limiter.Admit(nc); release != nil {
			return &conn{nc, release}, nil
		}
	}
}

type conn struct {
	net.Conn
	release func()
}

func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
