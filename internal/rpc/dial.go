package rpc

import (
	"context"
	"math"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// Sizes of a connection. Windows take a large tensor without a pause for the acknowledgement of its parts; buffers trade
// system calls against memory that every connection holds.
const (
	windowSize  = 64 << 20
	readBuffer  = 256 << 10
	writeBuffer = 128 << 10
)

// maxBackoff is the longest pause between attempts to connect, as TensorFlow has it: tasks that restart are found soon.
const maxBackoff = time.Second

// A host that is gone is noticed by its silence in TCP, whether something was sent to it or not: TensorFlow's servers take
// pings of HTTP/2 for an attack.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

const maxSilence = 30 * time.Second

// Listen listens for connections whose other ends may die without a word.
func Listen(address *net.TCPAddr) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive, Control: control}
	return config.Listen(context.Background(), "tcp", address.String())
}

func control(_, _ string, conn syscall.RawConn) error { return limitSilence(conn, maxSilence) }

// Conn is a connection to a server. It connects when it is first used, again whenever it must, and never through a proxy.
type Conn = grpc.ClientConn

// Dial returns a connection to the server at address, "host:port".
func Dial(address string) (*Conn, error) {
	if err := cluster.CheckAddress(address); err != nil {
		return nil, err
	}
	dialer := &net.Dialer{KeepAliveConfig: keepAlive, Control: control}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		experimental.WithBufferPool(frames),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // of calls that a server has seen; it would keep a copy of each until it is answered
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithInitialWindowSize(windowSize),
		grpc.WithInitialConnWindowSize(windowSize),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithWriteBufferSize(writeBuffer),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(newCodec()),
			grpc.MaxCallRecvMsgSize(math.MaxInt32),
			grpc.MaxCallSendMsgSize(math.MaxInt32),
		),
	)
	if err != nil {
		return nil, status.InvalidArgumentf("cannot connect to %s: %w", address, err)
	}
	return conn, nil
}

// CheckAddress reports whether an address has the form "host:port".
func CheckAddress(address string) error { return cluster.CheckAddress(address) }
