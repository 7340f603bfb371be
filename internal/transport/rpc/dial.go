package rpc

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/secure"
)

// TCP keep-alive detects a dead host, whether data is in flight or not. It is a second means next
// to the PINGs of package grpch2, which also detect a process behind a proxy that keeps the TCP
// connection alive: those may be off, and they do not check idle connections to TensorFlow.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// maxUnacknowledged bounds the time for which sent data may stay unacknowledged. It matches
// keepAlive.
const maxUnacknowledged = 30 * time.Second

// Listen returns a listener whose connections detect dead peers.
func Listen(address *net.TCPAddr) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: control}
	return config.Listen(context.Background(), "tcp", address.String())
}

func control(_, _ string, conn syscall.RawConn) error { return setUserTimeout(conn, maxUnacknowledged) }

// Conn is a connection to a server. It connects on first use, reconnects when necessary, and
// ignores proxy settings.
type Conn struct {
	address string
	client  *grpch2.Client
	limiter *ReceiveLimiter
	number  int          // in its set of connections, from 0
	heard   atomic.Int64 // time of the last response, ns by mono.Now; 0 before the first
}

// Dial returns a connection to the server at address, "host:port". It has a receive limiter of its
// own.
func Dial(address string) (*Conn, error) {
	return connect(address, NewReceiveLimiter(nil), nil)
}

// DialSecure is Dial with TLS. The server must be the given task, or any task if that is zero.
func DialSecure(address string, creds *secure.Credentials, task cluster.Task) (*Conn, error) {
	return connect(address, NewReceiveLimiter(nil), over(creds, task, address))
}

// An Upgrade secures a connection that has been established, or closes it.
type Upgrade func(context.Context, net.Conn) (net.Conn, error)

// DialWith is Dial over connections that upgrade returns.
func DialWith(address string, upgrade Upgrade) (*Conn, error) {
	return connect(address, NewReceiveLimiter(nil), upgrade)
}

// over returns the upgrade to TLS, nil without certificates.
func over(creds *secure.Credentials, task cluster.Task, address string) Upgrade {
	if creds == nil {
		return nil
	}
	return func(ctx context.Context, nc net.Conn) (net.Conn, error) { return creds.Client(ctx, nc, task, address) }
}

// connect returns a connection, with TLS if upgrade is not nil.
func connect(address string, limiter *ReceiveLimiter, upgrade Upgrade) (*Conn, error) {
	if err := cluster.CheckAddress(address); err != nil {
		return nil, err
	}
	dialer := &net.Dialer{KeepAliveConfig: keepAlive, Control: control}
	client := grpch2.NewClient(address, func(ctx context.Context) (net.Conn, error) {
		nc, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil || upgrade == nil {
			return nc, err
		}
		return upgrade(ctx, nc)
	})
	return &Conn{address: address, client: client, limiter: limiter}, nil
}

// Trace makes spans of the calls over a connection. It must be called before the first.
func (c *Conn) Trace(t grpch2.CallTracer) { c.client.Tracer = t }

// Failure returns the error of the last attempt to connect. It is nil if that succeeded, or if
// there was none.
func (c *Conn) Failure() error { return c.client.LastError() }

// LastHeard returns the time since the server last answered a call. It reports false if the server
// has not answered any.
func (c *Conn) LastHeard() (ago time.Duration, ok bool) {
	heard := time.Duration(c.heard.Load())
	return mono.Now() - heard, heard != 0
}

// state describes, for errors, what is known about a server that does not answer.
func (c *Conn) state() string {
	if failure := c.Failure(); failure != nil {
		return failure.Error()
	}
	if ago, ok := c.LastHeard(); ok {
		return fmt.Sprintf("it last answered a call %v ago", ago.Round(time.Millisecond))
	}
	return "it has not answered any call"
}

// Invoke calls a method and ignores its response.
func (c *Conn) Invoke(ctx context.Context, method string, req any) error {
	_, err := invoke[emptypb.Empty](ctx, &caller{conn: c, remote: c.address}, method, req)
	return err
}

// Call calls a method of a service that has no client of its own, and returns its response.
func Call[Resp any](ctx context.Context, c *Conn, method string, req any) (*Resp, error) {
	return invoke[Resp](ctx, &caller{conn: c, remote: c.address}, method, req)
}

// Close closes the connection. Calls over it fail.
func (c *Conn) Close() { c.client.Close() }

// CheckAddress reports whether an address has the form "host:port".
func CheckAddress(address string) error { return cluster.CheckAddress(address) }
