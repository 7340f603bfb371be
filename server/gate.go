package server

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/master"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/status"
)

// gate counts the steps that others have begun on this task, and refuses new ones when the task is
// to end. What steps under way need of it, such as their tensors, goes past the gate.
type gate struct {
	task cluster.Task

	mu      sync.Mutex
	closed  bool          // guarded by mu
	running int           // guarded by mu
	idle    chan struct{} // closed when the gate is closed and nothing runs

	rest  func()      // called when nothing has come for idleTime
	moves int         // guarded by mu; how often something has come or gone
	seen  int         // guarded by mu; how often it had when the clock was last looked at
	clock *time.Timer // guarded by mu; nil while the task is at rest
}

// idleTime is for how long nothing must have come before a task gives memory back.
const idleTime = 5 * time.Second

func newGate(task cluster.Task) *gate {
	return &gate{task: task, idle: make(chan struct{})}
}

// look calls rest if nothing has come since it was last called, and is called again otherwise.
func (g *gate) look() {
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

// close refuses what comes, and waits for what runs as long as ctx lives. It is called once, and
// returns an error if something still runs.
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
		return status.DeadlineExceededf("steps of %v still ran when it had to stop, and were cancelled", g.task)
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
		g.clock = time.AfterFunc(idleTime, g.look)
	}
	return nil
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

// gatedMaster is a master as clients see it.
type gatedMaster struct {
	*master.Master
	gate *gate
}

func (m gatedMaster) CreateSession(ctx context.Context, req *pb.CreateSessionRequest) (*pb.CreateSessionResponse, error) {
	return through(ctx, m.gate, m.Master.CreateSession, req)
}

func (m gatedMaster) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	return through(ctx, m.gate, m.Master.RunStep, req)
}

func (m gatedMaster) RunCallable(ctx context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	return through(ctx, m.gate, m.Master.RunCallable, req)
}

// gatedWorker is a worker as other tasks see it.
type gatedWorker struct {
	*worker.Worker
	gate *gate
}

func (w gatedWorker) CreateWorkerSession(ctx context.Context, req *pb.CreateWorkerSessionRequest) (*pb.CreateWorkerSessionResponse, error) {
	return through(ctx, w.gate, w.Worker.CreateWorkerSession, req)
}

func (w gatedWorker) RunGraph(ctx context.Context, req *message.RunGraphRequest) (*message.RunGraphResponse, error) {
	return through(ctx, w.gate, w.Worker.RunGraph, req)
}
