package server

import (
	"io"
	"log/slog"
	"net"
	"time"
)

// Option changes how a server runs.
type Option func(*options)

type options struct {
	log        *slog.Logger
	insecure   bool
	listen     string
	listener   net.Listener
	sessionTTL time.Duration
	placement  io.Writer
	grace      time.Duration

	receiveWindow  int64 // in bytes; 0 for the default
	receiveMaxWait time.Duration
}

// gracePeriod is the time for steps to end that [Server.Run] allows by default.
const gracePeriod = 10 * time.Second

func newOptions(opts []Option) *options {
	o := &options{log: slog.Default(), grace: gracePeriod} //nolint:forbidigo // nobody has passed one in
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// WithLogger makes the server log to l, in the place of [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// Insecure lets the server listen beyond this machine. Whoever reaches it there can run what they
// like on it.
func Insecure() Option { return func(o *options) { o.insecure = true } }

// WithListen makes the server listen on another address than the one by which the cluster knows it,
// as is needed where that is an address of a proxy or of a network that translates addresses:
// "0.0.0.0:2222".
func WithListen(address string) Option { return func(o *options) { o.listen = address } }

// WithListener makes the server use a listener that is there already, which it closes when it
// stops. Whoever starts several tasks on free ports listens for all of them first, so that each
// knows the others' addresses.
func WithListener(l net.Listener) Option { return func(o *options) { o.listener = l } }

// WithGracePeriod sets the time that running steps have to end when the context of [Server.Run] has
// ended. The default is 10 seconds.
func WithGracePeriod(d time.Duration) Option { return func(o *options) { o.grace = d } }

// withReceiveWindow bounds the bytes of large tensors that arrive at the same time, and the wait of
// their senders.
func withReceiveWindow(window int64, maxWait time.Duration) Option {
	return func(o *options) { o.receiveWindow, o.receiveMaxWait = window, maxWait }
}

// WithSessionTTL makes the server close sessions that nobody has used for so long.
func WithSessionTTL(d time.Duration) Option { return func(o *options) { o.sessionTTL = d } }

// WithPlacementLog makes the server write a line for each node of a session that wants its
// placement logged.
func WithPlacementLog(w io.Writer) Option { return func(o *options) { o.placement = w } }
