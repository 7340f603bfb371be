// Package master coordinates the tasks of a cluster on behalf of clients: it implements
// MasterService.
//
// A client's session owns a graph, placed as a whole on the devices of the session's tasks. The
// first step with given feeds, fetches and targets makes a plan: the part of the graph that they
// need, optimized, partitioned by task and registered with the worker of every task. A step looks
// its plan up, sends RunGraph to all tasks of the plan at the same time, and returns what the
// partition of the master's own task has fetched. The master calls its own worker as a plain
// function.
//
// Locks are taken in this order: [Master].mu, session.mu, step.mu, taskSet.mu. None of them is held
// during a call to a worker or a pass over a graph. All goroutines of a master are started by its
// background group, except those that a method starts and waits for.
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
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Worker is the part of WorkerService that a master uses.
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
	// Acquire waits until no other step of the key runs, and returns the number of the next step.
	// If that is not known, Acquire calls ask, which is nil on the task that assigns the numbers.
	// The caller must call Release.
	Acquire(ctx context.Context, key int64, ask func(context.Context) (int64, error)) (int64, error)
	// Release ends a step. The number of a step that failed is assigned again.
	Release(key int64, succeeded bool)
	// Forget makes the next step of a graph fetch its number from the leader.
	Forget(key int64)
}

// Workers reaches the tasks of a cluster.
type Workers interface {
	// Tasks returns all tasks, the master's own one included.
	Tasks() []cluster.Task
	// Worker returns one of them. It does not wait for a connection.
	Worker(task cluster.Task) (Worker, error)
}

// Config holds the parameters of a master.
type Config struct {
	Task cluster.Task
	// Cluster is compared with the specifications of the other tasks; nil for no comparison.
	Cluster cluster.Spec
	Workers Workers
	Kernels *kernel.Registry
	Quota   *quota.Quota   // limits of the clients; nil for none
	Policy  *kernel.Policy // operations that sessions may run; nil for all
	// Sequences is shared with the task's worker, which serves the numbers to other masters.
	Sequences Sequences
	// Connect returns the tasks of a cluster that a session brings, in which this task has the
	// given name. If it is nil, sessions may not bring one.
	Connect func(spec cluster.Spec, self cluster.Task) (Workers, error)
	// SessionDefaults is the configuration of sessions where they do not set their own; may be nil.
	SessionDefaults *pb.ConfigProto
	// SessionTTL is the time after which an unused session is closed; 0 for never.
	SessionTTL time.Duration
	// Recorder records the steps of the master; nil for never.
	Recorder *recorder.Recorder
	// Placement receives a line for every node of a session that asks for its placement to be
	// logged, in the format of TensorFlow's servers; may be nil.
	Placement io.Writer
	// Observer is notified of steps; may be nil.
	Observer observe.Observer
	// Tracer makes spans of steps; may be nil.
	Tracer observe.Tracer
	Log    *slog.Logger
}

const (
	// recentRequests is the number of request IDs that a master remembers; it is TensorFlow's
	// number.
	recentRequests = 10_000
	// watchPeriod is how often the master looks for unused sessions and stalled steps.
	watchPeriod = 2 * time.Second
	// stallTime is how long a step may run before the master asks its tasks whether they live.
	stallTime = 10 * time.Second
	// longStep is how long a step may run, and one that has failed go on on some task, before that
	// is logged although all tasks live.
	longStep = 60 * time.Second
	// cleanupTimeout bounds the calls that end a step or a session on another task.
	cleanupTimeout = 10 * time.Second
	// deletePeriod is the interval between attempts to end a session on a task that cannot be
	// reached, and deleteTries is their number. After that the task has to ask.
	deletePeriod = 30 * time.Second
	deleteTries  = 20
	// cleanupGrace is how long the end of a session waits for cleanups of its last steps. A task
	// that lives answers them within milliseconds.
	cleanupGrace = 2 * time.Second
	// logPeriod is the interval between log lines about a wait for other tasks.
	logPeriod = 10 * time.Second
)

// Master serves sessions. Its methods are those of MasterService and may be called concurrently.
type Master struct {
	Config
	recent     *requestid.Recent
	clusters   clusterCheck
	background background
	waits      waits
	failures   failures
	maxNames   int             // feeds, fetches and targets of a step
	ctx        context.Context // of background work; ends when the master is closed
	stop       context.CancelFunc

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu; nil once the master is closed
}

// New returns a master. The caller must call Close.
func New(cfg Config) *Master {
	m := &Master{Config: cfg, clusters: clusterCheck{own: cfg.Cluster, hash: peer.HashCluster(cfg.Cluster)}, recent: requestid.NewRecent(recentRequests, 4), sessions: map[string]*session{}}
	m.maxNames = m.Quota.Most(quota.Nodes)
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.background.Go(m.watch)
	return m
}

// Close closes all sessions, and waits until their steps and the background work have ended, or
// until ctx ends.
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
	done := make(chan struct{})
	go func() {
		m.background.wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// session returns the session of a handle. It returns nil if there is none, or if it is not the
// caller's.
func (m *Master) session(ctx context.Context, handle string) *session {
	m.mu.Lock()
	s := m.sessions[handle]
	m.mu.Unlock()
	if s == nil || !s.mayUse(ctx) {
		return nil
	}
	return s
}

// use returns the session of a handle and marks it as used.
func (m *Master) use(ctx context.Context, handle string) (*session, error) {
	s := m.session(ctx, handle)
	if s == nil {
		return nil, status.Abortedf("Session %s is not found.", handle)
	}
	s.touch()
	return s, nil
}

// checkSessions returns an error if the caller of ctx may not have another session.
func (m *Master) checkSessions(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkSessionsLocked(trust.FromContext(ctx))
}

func (m *Master) checkSessionsLocked(owner *trust.Principal) error {
	if err := m.Quota.Check(quota.Sessions, len(m.sessions)+1); err != nil {
		return err
	}
	if owner == nil || m.Quota.Most(quota.PrincipalSessions) > len(m.sessions) {
		return nil
	}
	n := 1
	for _, s := range m.sessions {
		if s.owner != nil && *s.owner == *owner {
			n++
		}
	}
	return m.Quota.Check(quota.PrincipalSessions, n)
}

// add registers a session under its handle.
func (m *Master) add(s *session) error {
	if err := failpoint.Hit("master/create-session"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions == nil {
		return status.Abortedf("The master of %v is shutting down.", m.Task)
	}
	if err := m.checkSessionsLocked(s.owner); err != nil {
		return err
	}
	m.sessions[s.handle] = s
	return nil
}

// Sessions returns the number of open sessions.
func (m *Master) Sessions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// remove unregisters and returns the session of a handle; nil if there is none.
func (m *Master) remove(handle string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[handle]
	delete(m.sessions, handle)
	return s
}

// sessionConfig returns a client's configuration, merged into the defaults of the server.
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
