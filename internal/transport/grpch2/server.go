package grpch2

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/transport/refusal"
)

// A Method handles the calls of one path.
type Method struct {
	// NewBody returns the memory for a request of size bytes. It may be called concurrently.
	NewBody func(size int) Body
	// Serve handles a call. It calls Call.Reply, before or after it returns, and must not panic. It
	// may be called concurrently.
	Serve func(*Call)
	// Short states that most calls take less than a millisecond. The reader of a connection may
	// serve such calls itself. A handler may then learn up to 8 ms late that its caller has
	// cancelled the call, because the connection is not read meanwhile.
	Short bool
	// Streaming states that a call has any number of requests, which Serve takes with Call.Next,
	// and as many responses as it sends with Call.Send. Serve is called when the call begins.
	Streaming bool
	// Audience is the kind of callers that the method is for.
	Audience Audience
}

// A Caller is what a server knows about the client at the other end of a connection.
type Caller struct {
	// Context is the parent of the contexts of the client's calls.
	Context context.Context //nolint:containedctx // see above
	// Name is the name of the client for observers.
	Name string
	// RawMessages states that the client does not decode the percent-encoding of grpc-message.
	RawMessages bool
	// ResetsIdleStreams states that the client resets streams that it has numbered and not opened.
	// Other clients lose the connection with such a frame, unless their settings show that they do
	// so, too.
	ResetsIdleStreams bool
}

// Server serves the calls of registered methods. Methods must be registered and fields set before
// Serve is called; the other methods may be called concurrently.
type Server struct {
	// Identify returns the caller on a connection for the value of the header user-agent. It is
	// called when that value changes on a connection.
	Identify func(nc net.Conn, userAgent string) Caller
	// Secure returns the connection that is served over one that was accepted, without any I/O. It
	// returns a SecureConn, or the connection itself. It may be nil.
	Secure func(net.Conn) net.Conn
	// Refused is called when a client has failed to secure its connection. If it returns a text, a
	// client that speaks HTTP/2 nonetheless gets it in a GOAWAY. It may be nil.
	Refused func(nc net.Conn, err error) (why string)
	// NameOf returns the name of a client that has secured its connection, "" if it has none or is
	// a task. It may be nil.
	NameOf func(net.Conn) string
	// Authorize decides whether a caller may call a method, before the request is read. Calls with
	// another code than 0 are answered with it. It may be nil.
	Authorize func(c *Caller, path string) (code uint32, text string)
	// Observer is notified of calls; nil for none.
	Observer CallObserver
	// Tracer makes spans of calls; nil for none.
	Tracer CallTracer
	// Limits bound what clients may use. By default, there are none.
	Limits Limits
	// IsTaskAddress reports whether a task of the cluster may have an IP address. It is called when
	// a limit on connections is reached; nil means that no address is known.
	IsTaskAddress func(netip.Addr) bool

	log     *slog.Logger
	methods map[string]*method // by path
	workers workerPool

	mu        sync.Mutex
	listeners map[net.Listener]struct{} // guarded by mu
	conns     map[*serverConn]struct{}  // guarded by mu
	stopping  bool                      // guarded by mu
	accepted  uint64                    // connections so far; guarded by mu
	ended     CallCounts                // of connections that have ended; guarded by mu
	byAddress map[netip.Addr]int        // number of conns by IP address; guarded by mu
	byName    map[string]int            // number of conns by name of the client; guarded by mu
	running   sync.WaitGroup            // connections, workers, rollbacks and calls in progress

	sweeping   bool          // sweepTimer runs; guarded by mu
	sweepTick  time.Duration // interval of sweeps; written before sweepTimer starts
	sweepTimer *time.Timer   // calls sweep; guarded by mu

	hits     [numLimits]atomic.Uint64 // clients that have reached a limit
	refusals refusal.Set
}

type method struct {
	Method
	index int
}

// NewServer returns a server without methods.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log: log, methods: map[string]*method{}, listeners: map[net.Listener]struct{}{}, conns: map[*serverConn]struct{}{},
		byAddress: map[netip.Addr]int{}, byName: map[string]int{},
		workers:  workerPool{timeout: idleTimeout},
		Identify: func(net.Conn, string) Caller { return Caller{Context: context.Background()} },
	}
}

// Handle registers a method for a path, "/package.Service/Method".
func (s *Server) Handle(path string, m Method) {
	s.methods[path] = &method{Method: m, index: len(s.methods)}
}

// Paths returns the registered paths, in no particular order.
func (s *Server) Paths() []string {
	out := make([]string, 0, len(s.methods))
	for path := range s.methods {
		out = append(out, path)
	}
	return out
}

// ErrServerStopped is returned by Serve after Shutdown or Close.
var ErrServerStopped = errors.New("http2: the server was stopped")

// Serve accepts connections until Shutdown or Close is called, or the listener fails. It closes the
// listener, and returns ErrServerStopped in the first case.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.addListener(l) {
		return ErrServerStopped
	}
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(nc)
		case s.isStopping():
			return ErrServerStopped
		case !isTemporary(err):
			return err
		default: // too many open files, for example
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("cannot accept a connection", "error", err, "retry_in", pause)
			<-time.After(pause)
		}
	}
}

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// addListener reports false if the server is stopping.
func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return !s.stopping
}

// isStopping reports whether Shutdown or Close was called.
func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// accept starts to serve a connection.
func (s *Server) accept(nc net.Conn) {
	if failpoint.Hit("grpch2/accept") != nil {
		nc.Close()
		return
	}
	if !s.admit(nc) {
		return
	}
	if s.Secure != nil {
		nc = s.Secure(nc)
	}
	c := newServerConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.accepted++
	c.number = s.accepted
	s.byAddress[c.ip]++
	s.startSweep()
	s.running.Add(1)
	go c.run()
}

// removeConn forgets a connection whose reading has ended.
func (s *Server) removeConn(c *serverConn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.ended.add(c.calls.counts())
	if s.byAddress[c.ip]--; s.byAddress[c.ip] == 0 {
		delete(s.byAddress, c.ip)
	}
	if c.name != "" {
		if s.byName[c.name]--; s.byName[c.name] == 0 {
			delete(s.byName, c.name)
		}
	}
	s.mu.Unlock()
	s.running.Done()
}

// stop closes the listeners and dismisses idle workers. It returns the open connections.
func (s *Server) stop() []*serverConn {
	s.workers.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if s.sweepTimer != nil {
		s.sweepTimer.Stop()
	}
	for l := range s.listeners {
		l.Close()
	}
	out := make([]*serverConn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// Shutdown accepts no further calls, and returns when those in progress have been answered. A
// concurrent Close ends the wait.
func (s *Server) Shutdown() {
	for _, c := range s.stop() {
		go c.drain(codeNone, shuttingDown)
	}
	s.running.Wait()
	s.refusals.Close()
}

// Close closes all connections, cancels their calls, and returns when all handlers have replied.
func (s *Server) Close() {
	for _, c := range s.stop() {
		c.nc.Close()
	}
	s.running.Wait()
	s.refusals.Close()
}

// A Call is one call of a client. Its methods must not be called concurrently.
type Call struct {
	stream
	conn     *serverConn
	method   *method
	path     string
	observed observed
	traced   TraceHeaders
	endSpan  func(code uint32, text string) // nil without a span
	caller   *Caller
	ctx      context.Context
	cancel   context.CancelFunc
	encoding string
	// HTTP status of the answer to a request that is not gRPC; "" for a call
	httpStatus string
	body       Body
	streaming  bool // a message was sent with Send
	// another request was read already; both responses can be written together
	mayDelay bool
	outcome  Outcome       // set by Reply
	requests *requestQueue // of a call whose method is Streaming, or nil

	// The following fields are guarded by conn.out.mu.
	requestEnded bool // the client has ended its half of the stream
	responded    bool // the response has begun
	started      bool // the request is complete and is being served
}

// Context is cancelled when the call has been answered, when its caller cancels it, and at its
// deadline.
func (c *Call) Context() context.Context { return c.ctx }

// Request returns the body of the request, which the method's NewBody returned. It belongs to the
// handler.
func (c *Call) Request() Body { return c.body }
