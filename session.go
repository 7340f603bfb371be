package weft

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// Session runs parts of a graph on the devices of a target. It may be used concurrently. Nodes may
// be added to the graph between calls but not during one; nodes that a call has seen must not
// change.
//
// The first call that needs the master creates the session there. That call waits until the target
// and all tasks that the session may use are up, or until its context ends.
type Session struct {
	target   string
	graph    *graph.Graph
	settings *settings

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	// nil until the master has a graph; stored with startLock held
	remote atomic.Pointer[remoteSession]
	// a lock whose acquisition a context can interrupt: held by the call whose value is in the
	// channel
	startLock chan struct{}

	requests sync.Pool // *stepRequest values that no call uses

	mu     sync.Mutex
	closed bool // guarded by mu
}

// remoteSession is the state of a session on its master. It is immutable.
type remoteSession struct {
	master    rpc.Master
	inProcess bool                  // the master is called without a network
	done      func(context.Context) // ends the use of master
	handle    string
	version   int64 // of the master's graph
	nodes     int   // all nodes with lower IDs are in the master's graph
	functions int   // number of functions in the master's graph
}

// NewSession returns a session on a target for a graph. It checks the form of the target but does
// not connect to it: see [Session]. The caller closes the session.
func NewSession(target string, g *graph.Graph, opts ...SessionOption) (*Session, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	set := newSettings()
	for _, opt := range opts {
		if err := opt.applySession(set); err != nil {
			return nil, err
		}
	}
	s := &Session{target: target, graph: g, settings: set, startLock: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

var errClosed = status.FailedPreconditionf("Session has been closed.")

// closedError returns errClosed with the line of the program that uses the session.
func closedError(ctx context.Context) error {
	return status.FailedPreconditionf("%s%w", callsite.FindIn(ctx), errClosed)
}

// ready returns the session on the master, after the whole graph has been sent there.
func (s *Session) ready(ctx context.Context) (*remoteSession, error) {
	if r := s.remote.Load(); r != nil && s.isCurrent(r) {
		return r, nil
	}
	select {
	case s.startLock <- struct{}{}:
		defer func() { <-s.startLock }()
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for another call to start the session")
	case <-s.ctx.Done():
		return nil, closedError(ctx)
	}
	if s.ctx.Err() != nil {
		return nil, closedError(ctx)
	}
	r := s.remote.Load()
	if r != nil && s.isCurrent(r) {
		return r, nil
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	var err error
	if r == nil {
		r, err = s.create(ctx)
	} else {
		r, err = s.extend(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	s.remote.Store(r)
	return r, nil
}

func (s *Session) isCurrent(r *remoteSession) bool {
	return r.nodes == s.graph.NumIDs() && r.functions == s.graph.Library.Len()
}

// during returns a context that also ends with the session, and after the timeout unless that is 0.
func (s *Session) during(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errClosed) })
	release := func() {}
	if timeout > 0 {
		ctx, release = context.WithTimeout(ctx, timeout)
	}
	return ctx, func() {
		release()
		stop()
		cancel(nil)
	}
}

func (s *Session) create(ctx context.Context) (*remoteSession, error) {
	master, done, err := connect(s.target, s.settings)
	if err != nil {
		return nil, err
	}
	_, overNetwork := master.(*rpc.MasterClient)
	r := &remoteSession{master: master, inProcess: !overNetwork, done: done}
	def, err := s.additions(r)
	if err == nil {
		stop := s.logWhileWaiting()
		defer stop()
		var resp *pb.CreateSessionResponse
		resp, err = master.CreateSession(ctx, &pb.CreateSessionRequest{GraphDef: def, Config: s.settings.config, Target: s.target})
		r.handle, r.version = resp.GetSessionHandle(), resp.GetGraphVersion()
	}
	if err != nil {
		done(ctx)
		return nil, err
	}
	return r, nil
}

func (s *Session) extend(ctx context.Context, r *remoteSession) (*remoteSession, error) {
	next := *r
	def, err := s.additions(&next)
	if err != nil {
		return nil, err
	}
	resp, err := r.master.ExtendSession(ctx, &pb.ExtendSessionRequest{
		SessionHandle: r.handle, GraphDef: def, CurrentGraphVersion: r.version,
	})
	if err != nil {
		return nil, err
	}
	next.version = resp.GetNewGraphVersion()
	return &next, nil
}

// additions returns the nodes and functions that the master does not have, and counts them in r.
func (s *Session) additions(r *remoteSession) (*pb.GraphDef, error) {
	def := &graph.Def{Versions: s.graph.Versions}
	if def.Versions.Producer == 0 {
		def.Versions = graph.Versions{Producer: graph.ProducerVersion, MinConsumer: graph.MinConsumerVersion}
	}
	for ; r.nodes < s.graph.NumIDs(); r.nodes++ {
		if n := s.graph.NodeByID(r.nodes); n != nil {
			def.Nodes = append(def.Nodes, n.Def())
		}
	}
	lib := s.graph.Library
	if lib.Len() != r.functions { // functions that the master has may be sent again
		def.Gradient = map[string]string{}
		for _, name := range lib.Names() {
			f, _ := lib.Lookup(name)
			def.Library = append(def.Library, f.Def)
			if g := lib.Gradient(name); g != "" {
				def.Gradient[name] = g
			}
		}
		r.functions = len(def.Library)
	}
	return pbconv.GraphToProto(def)
}

// waitLogInterval is the time between two warnings about a target that is not up.
const waitLogInterval = 10 * time.Second

// logWhileWaiting logs a warning at intervals, until stop is called, that the master has not
// created the session yet.
func (s *Session) logWhileWaiting() (stop func()) {
	begin, ticker, done := time.Now(), time.NewTicker(waitLogInterval), make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		for {
			select {
			case <-ticker.C:
				s.settings.log.Warn("still waiting for the master to create a session", "target", s.target, "waited", time.Since(begin).Round(time.Second))
			case <-done:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		logging.Wait()
	}
}

// closeTimeout is the longest time that Close waits for a response of the master.
const closeTimeout = 10 * time.Second

// Close ends the session and cancels its running steps. It waits at most 10 seconds for the master
// and returns the master's error. If the connection breaks, it asks once more. Further calls of
// Close do nothing; calls of other methods fail with FailedPrecondition.
func (s *Session) Close() error {
	s.mu.Lock()
	wasClosed := s.closed
	s.closed = true
	s.mu.Unlock()
	if wasClosed {
		return nil
	}
	s.cancel()
	s.startLock <- struct{}{} // held forever: no call may start the session again
	r := s.remote.Load()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer r.done(ctx)
	req := &pb.CloseSessionRequest{SessionHandle: r.handle}
	_, err := r.master.CloseSession(ctx, req)
	if status.CodeOf(err) == status.Unavailable && ctx.Err() == nil {
		_, err = r.master.CloseSession(ctx, req)
		if status.CodeOf(err) == status.Aborted { // the first request has arrived
			err = nil
		}
	}
	return err
}
