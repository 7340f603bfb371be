package server

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/eager"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// gate counts the running steps that clients and other tasks have requested, and rejects new ones
// when the task stops. Calls that belong to a running step, such as those for its tensors, do not
// pass the gate.
type gate struct {
	task cluster.Task

	mu      sync.Mutex
	closed  bool          // new steps are rejected; guarded by mu
	running int           // guarded by mu
	idle    chan struct{} // closed when the gate is closed and nothing runs

	rest  func()      // called when the task has been idle for idleTime
	moves int         // number of steps that have begun or ended; guarded by mu
	seen  int         // moves at the last check; guarded by mu
	clock *time.Timer // next check; nil while the task is idle; guarded by mu
}

// idleTime is the time without steps after which a task returns memory to the machine.
const idleTime = 5 * time.Second

func newGate(task cluster.Task) *gate {
	return &gate{task: task, idle: make(chan struct{})}
}

// check calls rest if no step has run since the last check, and otherwise schedules the next one.
func (g *gate) check() {
	g.mu.Lock()
	busy := g.running > 0 || g.moves != g.seen
	g.seen = g.moves
	switch {
	case g.closed:
		busy = true
	case busy:
		g.clock.Reset(idleTime)
	default:
		g.clock = nil
	}
	g.mu.Unlock()
	if !busy {
		g.rest()
	}
}

// close rejects new steps, and waits for the running ones until ctx ends. It is called once, and
// returns an error if steps still run.
func (g *gate) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.clock != nil {
		g.clock.Stop()
	}
	if g.running == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		if isClosed(g.idle) {
			return nil
		}
		return status.DeadlineExceededf("steps of %v still ran at the end of the shutdown and were cancelled", g.task)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return status.Unavailablef("The task %v is shutting down.", g.task)
	}
	g.running++
	g.moves++
	if g.clock == nil {
		g.clock = time.AfterFunc(idleTime, g.check)
	}
	return nil
}

// count returns the number of running steps.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// used reports whether a step has ever run.
func (g *gate) used() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.moves > 0
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.moves++
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// through makes a call that the gate counts.
func through[Req, Resp any](
	ctx context.Context, g *gate, call func(context.Context, *Req) (*Resp, error), req *Req,
) (*Resp, error) {
	if err := g.enter(); err != nil {
		return nil, err
	}
	defer g.leave()
	return call(ctx, req)
}

// admitted is through for a call that makes a session. It waits while there is little memory, and
// then fails. Steps do not wait: what they recycle needs no memory, and what they allocate is asked
// for. So the sessions that exist go on while one of them has taken all that it could.
func admitted[Req, Resp any](
	ctx context.Context, g *gate, call func(context.Context, *Req) (*Resp, error), req *Req,
) (*Resp, error) {
	return through(ctx, g, func(ctx context.Context, req *Req) (*Resp, error) {
		if !membudget.Await(ctx) {
			return nil, status.ResourceExhaustedf("The memory of the process is nearly exhausted: no session begins above 95 %% of %d MiB (--memory-limit).",
				membudget.Limit()>>20)
		}
		return call(ctx, req)
	}, req)
}

// gatedMaster is a master with its gate, as clients call it.
type gatedMaster struct {
	*master.Master
	gate *gate
}

func (m gatedMaster) CreateSession(ctx context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	return admitted(ctx, m.gate, m.Master.CreateSession, req)
}

func (m gatedMaster) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	return through(ctx, m.gate, m.Master.RunStep, req)
}

// PartialRunSetup does not count: a partial run takes no time between its calls.
func (m gatedMaster) PartialRunSetup(ctx context.Context, req *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error) {
	return through(ctx, m.gate, m.Master.PartialRunSetup, req)
}

func (m gatedMaster) RunCallable(ctx context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	return through(ctx, m.gate, m.Master.RunCallable, req)
}

// gatedWorker is a worker with its gate, as other tasks call it.
type gatedWorker struct {
	*worker.Worker
	gate *gate
}

func (w gatedWorker) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return admitted(ctx, w.gate, w.Worker.CreateWorkerSession, req)
}

func (w gatedWorker) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	return through(ctx, w.gate, w.Worker.RunGraph, req)
}

// gatedEager is an eager service with its gate. A request within a stream counts by itself.
type gatedEager struct {
	*eager.Service
	gate *gate
}

func (e gatedEager) CreateContext(ctx context.Context, req *pb.CreateContextRequest) (*pb.CreateContextResponse, error) {
	return through(ctx, e.gate, e.Service.CreateContext, req)
}

func (e gatedEager) Enqueue(ctx context.Context, req *pb.EnqueueRequest) (*pb.EnqueueResponse, error) {
	return through(ctx, e.gate, e.Service.Enqueue, req)
}
