package server

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/inspect/tracing"
	"github.com/weft-ml/weft/kernel"
)

// Option changes how a server runs.
type Option func(*options)

type options struct {
	log        *slog.Logger
	level      *slog.LevelVar // of log; nil if it cannot be changed
	insecure   bool
	listen     string
	listener   net.Listener
	sessionTTL time.Duration
	placement  io.Writer
	grace      time.Duration

	exitWithJob   time.Duration // time for which the job must be over; 0 to stay
	orphanTimeout time.Duration // of sessions of other tasks' masters
	limits        Limits
	memory        int64 // limit in bytes, as in memlimit.Set
	files         fileio.Config
	policy        *kernel.Policy

	tls            *TLS                   // nil without TLS
	tlsOf          func(cluster.Task) TLS // sets tls; may be nil
	openHealth     bool
	openMetrics    bool
	plainListener  net.Listener
	plainPeers     []cluster.Task
	clientClusters []netip.Prefix
	audit          *AuditLog // nil for none

	gpu         string  // mode of WithGPU
	gpuFraction float64 // of the memory of each GPU; 0 for that of the configuration

	tracer *tracing.Tracer // nil for none

	http string // address of HTTP; "" for none
	rest bool   // sessions over HTTP

	receiveWindow  int64 // in bytes; 0 for the default
	receiveMaxWait time.Duration
}

// gracePeriod is the time for steps to end that [Server.Run] allows by default.
const gracePeriod = 10 * time.Second

func newOptions(opts []Option) *options {
	o := &options{log: slog.New(logging.AtLeast(slog.LevelWarn, slog.Default().Handler())), grace: gracePeriod, orphanTimeout: DefaultOrphanTimeout, limits: DefaultLimits()} //nolint:forbidigo // the default of WithLogger
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// WithLogger makes the server log to l. Without it, warnings and errors go to [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithLogLevel names the level of the logger, which operators can then change while the server runs
// ("weft log-level").
func WithLogLevel(l *slog.LevelVar) Option { return func(o *options) { o.level = l } }

// Insecure allows the server to listen on an address that other machines can reach. Traffic is
// neither encrypted nor authenticated: a process that reaches the server can run any graph on it.
// Operations then have files only below the folders of [WithFileRoot], and only the addresses of
// the cluster's tasks, and processes of the same machine, may drop variables and queues.
func Insecure() Option { return func(o *options) { o.insecure = true } }

// WithListen makes the server listen on another address than the one in the cluster, such as
// "0.0.0.0:2222". That is necessary if the cluster names a proxy, or an address that a network
// translates.
func WithListen(address string) Option { return func(o *options) { o.listen = address } }

// WithListener makes the server use an existing listener, and close it when it stops. A program
// that starts several tasks on free ports creates all listeners first, so that each task knows the
// addresses of the others.
func WithListener(l net.Listener) Option { return func(o *options) { o.listener = l } }

// WithFileRoot limits the files of operations to a folder, and those of further WithFileRoot
// options. Paths outside of them are PermissionDenied, and so are links that lead out, absolute
// links and, on Linux, file systems that are mounted below dir. The name is for error messages.
// Operations cannot write to a folder that is readOnly. dir may be a path in a store of objects,
// such as "s3://bucket/path". Without this option operations may use all files that the process may
// use, or none with [Insecure] on an address that other machines reach.
func WithFileRoot(name, dir string, readOnly bool) Option {
	return func(o *options) {
		o.files.Roots = append(o.files.Roots, fileio.Root{Name: name, Dir: dir, ReadOnly: readOnly})
	}
}

// WithMaxFileNames sets the number of names of files that a pattern may look at, for instance that
// of MatchingFiles. The default is 100,000; 0 means any number.
func WithMaxFileNames(n int) Option {
	return func(o *options) {
		if o.files.Names = n; n == 0 {
			o.files.Names = -1
		}
	}
}

// WithMaxFileCalls sets the number of file calls that run at a time. Further ones wait until their
// step ends. The default is 64.
func WithMaxFileCalls(n int) Option { return func(o *options) { o.files.Calls = n } }

// WithOperations limits the operations that the server runs, on behalf of its clients and of other
// tasks. Without this option it runs all.
func WithOperations(p *kernel.Policy) Option { return func(o *options) { o.policy = p } }

// WithGracePeriod sets the time that running steps have to end when the context of [Server.Run] has
// ended. The default is 10 seconds.
func WithGracePeriod(d time.Duration) Option { return func(o *options) { o.grace = d } }

// WithTracerProvider makes the server make spans for OpenTelemetry of the calls that it serves and
// makes, of the steps whose master it is, and of the functions of TensorFlow 2 clients. They are
// children of the spans that clients send in W3C Trace Context.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) { o.tracer = tracing.New(p) }
}

// WithLimits replaces [DefaultLimits].
func WithLimits(l Limits) Option { return func(o *options) { o.limits = l } }

// WithMemoryLimit sets the memory, in bytes, that the process may use. A step that needs more fails
// with ResourceExhausted. The default is 90 % of what the machine, or the control group of the
// process, has; a negative number means no limit. The limit is that of the whole process: all
// servers in it share one heap, and the last one that sets a limit decides.
func WithMemoryLimit(bytes int64) Option { return func(o *options) { o.memory = bytes } }

// withReceiveWindow sets the window, in bytes, and the longest wait of the receive limiter.
func withReceiveWindow(window int64, maxWait time.Duration) Option {
	return func(o *options) { o.receiveWindow, o.receiveMaxWait = window, maxWait }
}

// WithSessionTTL makes the server close sessions that have not been used for d. The default is
// never.
func WithSessionTTL(d time.Duration) Option { return func(o *options) { o.sessionTTL = d } }

// DefaultOrphanTimeout is the time of [WithOrphanTimeout] by default.
const DefaultOrphanTimeout = 10 * time.Minute

// WithOrphanTimeout sets when the server drops its part of a session whose master, on another task,
// has vanished. A session that is not used is dropped when its master says that it has ended, or if
// the master, which could be reached before, cannot be reached for d. The server asks each tenth of
// d. 0 means never. The default is [DefaultOrphanTimeout].
func WithOrphanTimeout(d time.Duration) Option { return func(o *options) { o.orphanTimeout = d } }

// WithPlacementLog makes the server write a line for each node of a session that asks for its
// placement to be logged.
func WithPlacementLog(w io.Writer) Option { return func(o *options) { o.placement = w } }
