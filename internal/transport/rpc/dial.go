package rpc

import (
	"context"
	"net"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/grpch2"
)

// A host that is gone is noticed by its silence in TCP, whether something was sent to it or not:
// TensorFlow's servers take pings of HTTP/2 for an attack.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

const maxSilence = 30 * time.Second

// Listen listens for connections whose other ends may die without a word.
func Listen(address *net.TCPAddr) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: control}
	return config.Listen(context.Background(), "tcp", address.String())
}

func control(_, _ string, conn syscall.RawConn) error { return limitSilence(conn, maxSilence) }

// Conn is a connection to a server. It connects when it is first used, again whenever it must, and
// never through a proxy.
type Conn struct {
	address string
	client  *grpch2.Client
}

// Dial returns a connection to the server at address, "host:port".
func Dial(address string) (*Conn, error) {
	if err := cluster.CheckAddress(address); err != nil {
		return nil, err
	}
	dialer := &net.Dialer{KeepAliveConfig: keepAlive, Control: control}
	return &Conn{address, grpch2.NewClient(address, func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	})}, nil
}

// Invoke calls a method whose response is of no interest.
func (c *Conn) Invoke(ctx context.Context, method string, req any) error {
	_, err := invoke[emptypb.Empty](ctx, &caller{conn: c, remote: c.address}, method, req)
	return err
}

// Close ends the connection, and the calls over it.
func (c *Conn) Close() { c.client.Close() }

// CheckAddress reports whether an address has the form "host:port".
func CheckAddress(address string) error { return cluster.CheckAddress(address) }
