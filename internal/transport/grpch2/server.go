package grpch2

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A Method serves the calls of one path.
type Method struct {
	// Room returns the memory for a request of the given size.
	NewBody func(size int) Body
	// Serve answers a call, at once or later, with Reply. It must not panic.
	Serve func(*Call)
	// Short says that most calls take less than a millisecond. They may be served by who reads
	// their connection, and then learn up to that much later that their caller has given up.
	Short bool
}

// Server answers calls. Its methods are set before it serves.
type Server struct {
	log     *slog.Logger
	methods map[string]*method // by path
	hands   hands

	mu        sync.Mutex
	listeners map[net.Listener]struct{} // guarded by mu
	conns     map[*serverConn]struct{}  // guarded by mu
	stopping  bool                      // guarded by mu
	running   sync.WaitGroup            // connections, hands, and calls that are being served
}

type method struct {
	Method
	index int
}

// NewServer returns a server without methods.
func NewServer(log *slog.Logger) *Server {
	return &Server{
		log: log, methods: map[string]*method{}, listeners: map[net.Listener]struct{}{}, conns: map[*serverConn]struct{}{},
		hands: hands{rest: handsRest},
	}
}

// Handle makes a method known under its path, "/package.Service/Method".
func (s *Server) Handle(path string, m Method) {
	s.methods[path] = &method{Method: m, index: len(s.methods)}
}

// Paths returns the paths of all methods, in no order.
func (s *Server) Paths() []string {
	out := make([]string, 0, len(s.methods))
	for path := range s.methods {
		out = append(out, path)
	}
	return out
}

// ErrServerStopped is returned by Serve after Shutdown or Close.
var ErrServerStopped = errors.New("http2: the server was stopped")

// Serve accepts connections until the server is stopped or the listener fails, and closes the
// listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.keep(l) {
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
			s.log.Warn("cannot accept a connection", "error", err, "again in", pause)
			<-time.After(pause)
		}
	}
}

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) keep(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return !s.stopping
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// accept serves a connection.
func (s *Server) accept(nc net.Conn) {
	c := newServerConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	go c.run()
}

// remove is called when nobody reads a connection any more.
func (s *Server) remove(c *serverConn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.running.Done()
}

// stop ends the accepting of connections and returns those that are there.
func (s *Server) stop() []*serverConn {
	s.hands.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for l := range s.listeners {
		l.Close()
	}
	out := make([]*serverConn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// Shutdown takes no new calls and waits until those that are under way have been answered, or for
// Close.
func (s *Server) Shutdown() {
	for _, c := range s.stop() {
		go c.drain()
	}
	s.running.Wait()
}

// Close ends all connections and calls, and waits for what serves them.
func (s *Server) Close() {
	for _, c := range s.stop() {
		c.nc.Close()
	}
	s.running.Wait()
}

// A Call is one that a server was asked. Its methods are for one goroutine at a time.
type Call struct {
	stream
	conn      *serverConn
	method    *method
	ctx       context.Context
	cancel    context.CancelFunc
	encoding  string
	body      Body
	streaming bool    // a message has been sent
	canWait   bool    // another request is there, with whose answer this one's can be written
	outcome   Outcome // once it is known
}

// Context ends with the call: when it has been answered, when its caller gives it up, and with its
// deadline.
func (c *Call) Context() context.Context { return c.ctx }

// Request returns the body of the request, which came from the method's Room.
func (c *Call) Request() Body { return c.body }
