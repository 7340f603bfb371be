// Package master coordinates the tasks of a cluster on behalf of clients: it implements
// MasterService.
//
// A client's session owns a graph, placed as a whole on the devices of the session's tasks. The
// first step with some feeds, fetches and targets makes a plan of them: the part of the graph that
// they need, optimized, split by task and registered with every task's worker. A step looks its
// plan up, sends RunGraph to all tasks of the plan at the same time, and returns what the master's
// own task fetched. The master's own worker is called as a plain function.
//
// Locks are taken in this order: [Master].mu, session.mu. Neither is held during a call to a worker
// or a pass over a graph.
package master

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Worker is what a master asks of one task.
type Worker interface {
	GetStatus(ctx context.Context, req *pb.GetStatusRequest) (*pb.GetStatusResponse, error)
	CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error)
	DeleteWorkerSession(ctx context.Context, req *pb.DeleteWorkerSessionRequest) (*pb.DeleteWorkerSessionResponse, error)
	RegisterGraph(ctx context.Context, req *pb.RegisterGraphRequest) (*pb.RegisterGraphResponse, error)
	DeregisterGraph(ctx context.Context, req *pb.DeregisterGraphRequest) (*pb.DeregisterGraphResponse, error)
	RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error)
	CleanupGraph(ctx context.Context, req *pb.CleanupGraphRequest) (*pb.CleanupGraphResponse, error)
	CleanupAll(ctx context.Context, req *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error)
	Logging(ctx context.Context, req *pb.LoggingRequest) (*pb.LoggingResponse, error)
	GetStepSequence(ctx context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error)
}

// Sequences numbers the steps with collective operations, by the key of their graph.
type Sequences interface {
	// Acquire waits until no other step of the key runs and returns the number of the next one. If
	// it is not known, ask is called for it, which is nil on the task that gives the numbers out.
	// The caller must call Release.
	Acquire(ctx context.Context, key int64, ask func(context.Context) (int64, error)) (int64, error)
	// Release ends a step. One that has succeeded uses its number up.
	Release(key int64, succeeded bool)
}

// Workers reaches the tasks of a cluster.
type Workers interface {
	// Tasks returns all tasks, the master's own one included.
	Tasks() []cluster.Task
	// Worker returns one of them. It does not wait for a connection.
	Worker(task cluster.Task) (Worker, error)
}

// Config is what a master is made of.
type Config struct {
	Task    cluster.Task
	Workers Workers
	Kernels *kernel.Registry
	// Sequences is shared with the task's worker, which tells other masters the numbers.
	Sequences Sequences
	// Connect reaches the cluster that a session brings along, in which this task has the given
	// name. It is nil where sessions may not bring one.
	Connect func(spec cluster.Spec, self cluster.Task) (Workers, error)
	// SessionDefaults is what sessions get that do not say otherwise; may be nil.
	SessionDefaults *pb.ConfigProto
	// SessionTTL is how long a session lives that nobody uses; 0 for ever.
	SessionTTL time.Duration
	// Placement gets a line for every node of a session that wants its placement logged, as
	// TensorFlow's servers print it; may be nil.
	Placement io.Writer
	Log       *slog.Logger
}

const (
	// recentRequests is how many request identifiers a master remembers, TensorFlow's number.
	recentRequests = 10_000
	// watchPeriod is how often the master looks for unused sessions and stalled steps.
	watchPeriod = 2 * time.Second
	// stallTime is how long a step may run before the master asks its tasks whether they live.
	stallTime = 10 * time.Second
	// longStep is how long a step may run, and one that has failed go on on some task, before that
	// is logged although all tasks live.
	longStep = 60 * time.Second
	// cleanupTimeout bounds what a task is asked to do for a step or session that is over.
	cleanupTimeout = 10 * time.Second
	// logPeriod is how often a wait for other tasks is logged, with their names.
	logPeriod = 10 * time.Second
)

// Master serves sessions. Its methods are those of MasterService and may be called concurrently.
type Master struct {
	Config
	recent     *requestid.Recent
	background background
	ctx        context.Context // of what goes on beside requests; ends when the master is closed
	stop       context.CancelFunc

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu; nil once the master is closed
}

// New returns a master. Close must be called when it is no longer used.
func New(cfg Config) *Master {
	m := &Master{Config: cfg, recent: requestid.NewRecent(recentRequests, 4), sessions: map[string]*session{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.background.Go(m.watch)
	return m
}

// Close closes all sessions. It waits, no longer than ctx lives, until nothing of them goes on.
func (m *Master) Close(ctx context.Context) {
	m.mu.Lock()
	sessions := m.sessions
	m.sessions = nil
	m.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.close(ctx, closedByClient) })
	}
	wg.Wait()
	m.stop()
	over := make(chan struct{})
	go func() {
		m.background.wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// session returns the session of a handle, or nil.
func (m *Master) session(handle string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[handle]
}

// use is session for requests that keep the session from being collected.
func (m *Master) use(handle string) (*session, error) {
	s := m.session(handle)
	if s == nil {
		return nil, status.Abortedf("Session %s is not found.", handle)
	}
	s.touch()
	return s, nil
}

// add makes a session known under its handle.
func (m *Master) add(s *session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions == nil {
		return status.Abortedf("The master of %v is shutting down.", m.Task)
	}
	m.sessions[s.handle] = s
	return nil
}

// remove returns the session of a handle, which is then no longer known, or nil.
func (m *Master) remove(handle string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[handle]
	delete(m.sessions, handle)
	return s
}

// sessionConfig returns a client's configuration with the server's defaults where it says nothing.
func (m *Master) sessionConfig(client *pb.ConfigProto) *pb.ConfigProto {
	config := &pb.ConfigProto{}
	if m.SessionDefaults != nil {
		proto.Merge(config, m.SessionDefaults)
	}
	if client != nil {
		proto.Merge(config, client)
	}
	return config
}
