package weft

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// Session runs parts of a graph on the devices of a target. It may be used concurrently. The graph
// may grow between calls, not during one; nodes that a call has seen must not change.
//
// The master hears of the session with the first call that needs it. That call waits until the
// target and all tasks that the session may use are up, as long as its context lives.
type Session struct {
	target   string
	graph    *graph.Graph
	settings *settings

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	known  atomic.Pointer[known] // nil until the master has a graph; replaced by the holder of turn
	// has room for one: who puts something in may change what the master knows
	turn chan struct{}

	requests sync.Pool // of *stepRequest that no call uses

	mu     sync.Mutex
	closed bool // guarded by mu
}

// known is what the master knows of a session. It is never modified.
type known struct {
	master    rpc.Master
	inProcess bool // the master is called without a network
	done      func(context.Context)
	handle    string
	version   int64 // of the graph there
	nodes     int   // those with lower IDs are there
	functions int   // number of functions there
}

// NewSession returns a session on a target for a graph. It connects to nothing yet.
func NewSession(target string, g *graph.Graph, opts ...Option) (*Session, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	s := &Session{target: target, graph: g, settings: set, turn: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

var errClosed = status.FailedPreconditionf("Session has been closed.")

// ready returns what the master knows after it has learnt of all of the graph.
func (s *Session) ready(ctx context.Context) (*known, error) {
	if k := s.known.Load(); k != nil && s.isCurrent(k) {
		return k, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, status.FromContext(ctx, "waiting for another call to start the session")
	case <-s.ctx.Done():
		return nil, errClosed
	}
	if s.ctx.Err() != nil {
		return nil, errClosed
	}
	k := s.known.Load()
	if k != nil && s.isCurrent(k) {
		return k, nil
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	var err error
	if k == nil {
		k, err = s.create(ctx)
	} else {
		k, err = s.extend(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	s.known.Store(k)
	return k, nil
}

func (s *Session) isCurrent(k *known) bool {
	return k.nodes == s.graph.NumIDs() && k.functions == s.graph.Library.Len()
}

// during returns a context that also ends with the session, and after a time if one is given.
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

func (s *Session) create(ctx context.Context) (*known, error) {
	master, done, err := connect(s.target, s.settings)
	if err != nil {
		return nil, err
	}
	_, overNetwork := master.(*rpc.MasterClient)
	k := &known{master: master, inProcess: !overNetwork, done: done}
	def, err := s.additions(k)
	if err == nil {
		stop := s.sayWhoIsWaitedFor()
		defer stop()
		var resp *pb.CreateSessionResponse
		resp, err = master.CreateSession(ctx, &pb.CreateSessionRequest{GraphDef: def, Config: s.settings.config, Target: s.target})
		k.handle, k.version = resp.GetSessionHandle(), resp.GetGraphVersion()
	}
	if err != nil {
		done(ctx)
		return nil, err
	}
	return k, nil
}

func (s *Session) extend(ctx context.Context, k *known) (*known, error) {
	next := *k
	def, err := s.additions(&next)
	if err != nil {
		return nil, err
	}
	resp, err := k.master.ExtendSession(ctx, &pb.ExtendSessionRequest{
		SessionHandle: k.handle, GraphDef: def, CurrentGraphVersion: k.version,
	})
	if err != nil {
		return nil, err
	}
	next.version = resp.GetNewGraphVersion()
	return &next, nil
}

// additions returns what the graph has and the master does not, and adds it to k.
func (s *Session) additions(k *known) (*pb.GraphDef, error) {
	def := &graph.Def{Versions: s.graph.Versions}
	if def.Versions.Producer == 0 {
		def.Versions = graph.Versions{Producer: graph.ProducerVersion, MinConsumer: graph.MinConsumerVersion}
	}
	for ; k.nodes < s.graph.NumIDs(); k.nodes++ {
		if n := s.graph.NodeByID(k.nodes); n != nil {
			def.Nodes = append(def.Nodes, n.Def())
		}
	}
	lib := s.graph.Library
	if lib.Len() != k.functions { // a function that the master has may come again
		def.Gradient = map[string]string{}
		for _, name := range lib.Names() {
			f, _ := lib.Lookup(name)
			def.Library = append(def.Library, f.Def)
			if g := lib.Gradient(name); g != "" {
				def.Gradient[name] = g
			}
		}
		k.functions = len(def.Library)
	}
	return pbconv.GraphToProto(def)
}

// waitLog is how often a session says that it waits for its target.
const waitLog = 10 * time.Second

// sayWhoIsWaitedFor logs from time to time, until stop is called, that the session is not there
// yet.
func (s *Session) sayWhoIsWaitedFor() (stop func()) {
	begin, ticker, done := time.Now(), time.NewTicker(waitLog), make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		for {
			select {
			case <-ticker.C:
				s.settings.log.Warn("still waiting for the master to create a session", "target", s.target, "waited", time.Since(begin))
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

// closeTimeout is how long Close waits for a master that does not answer.
const closeTimeout = 10 * time.Second

// Close ends the session. Steps that run are cancelled. It may be called more than once.
func (s *Session) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.cancel()
	s.turn <- struct{}{} // for ever: nobody may start the session again
	k := s.known.Load()
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := k.master.CloseSession(ctx, &pb.CloseSessionRequest{SessionHandle: k.handle})
	k.done(ctx)
	return err
}
