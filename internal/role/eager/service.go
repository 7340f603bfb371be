// Package eager runs operations and functions one by one for clients that hold eager contexts: it
// implements EagerService, which TensorFlow 2 programs use.
//
// A client creates a context on every task of its cluster, under one number. It then sends
// operations to the tasks. Their outputs stay on the task as handles, which later operations name.
// A function runs on the devices that its nodes request: the task that is asked for it, the runner,
// splits it, registers the parts for other tasks with them, and runs all parts in one step. So a
// task is both a server of this service and a client of it.
//
// The package has no runtime of its own. A context owns a [worker.Scope], in whose steps
// everything runs. An operation is compiled as a graph of one node, and a function by package
// function; both are kept in caches, because they run many times.
//
// Every call runs on the goroutine that serves it. No pool bounds the calls in progress: the parts
// of a function wait for one another, so a bound would be a deadlock.
//
// Locks are taken in this order: Service.mu, Context.mu, plan locks. None is held while a kernel or
// a call to another task runs.
package eager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/worker"
	"github.com/weft-ml/weft/internal/sys/observe"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// Config holds the parameters of a service.
type Config struct {
	Worker  *worker.Worker
	Kernels *kernel.Registry
	// Tracer makes spans of functions; may be nil.
	Tracer observe.Tracer
	Log    *slog.Logger
	// Now returns the time, for contexts whose clients have vanished; nil for time.Now.
	Now func() time.Time
}

// sweepInterval is the time between checks for contexts whose clients have vanished.
const sweepInterval = time.Second

// maxContexts bounds the contexts of a task. Each costs some kilobytes without values.
const maxContexts = 1 << 16

// Service holds the eager contexts of one task. Its methods are those of EagerService and may be
// called concurrently.
type Service struct {
	Config
	ctx     context.Context // ends when the service is closed
	cancel  context.CancelFunc
	running sync.WaitGroup // sweeper, and calls that clean up on other tasks

	mu       sync.Mutex
	contexts map[uint64]*Context // guarded by mu
	sweeping bool                // a goroutine sweeps; guarded by mu
	closed   bool                // guarded by mu
}

// New returns a service without contexts. The caller must call Close.
func New(cfg Config) *Service {
	s := &Service{Config: cfg, contexts: map[uint64]*Context{}}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close drops all contexts and waits for the goroutines of the service. Calls in progress fail.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Values(s.contexts))
	clear(s.contexts)
	s.mu.Unlock()
	for _, c := range all {
		c.close()
	}
	s.cancel()
	s.running.Wait()
}

// NumContexts returns the number of contexts.
func (s *Service) NumContexts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.contexts)
}

// CreateContext creates a context. One of the same number is dropped, unless its view is newer.
func (s *Service) CreateContext(ctx context.Context, req *pb.CreateContextRequest) (*pb.CreateContextResponse, error) {
	id, view := req.GetContextId(), req.GetContextViewId()
	var old []*Context
	s.mu.Lock()
	if req.GetClearExistingContexts() {
		for other, c := range s.contexts {
			if c.mayUse(ctx) {
				old = append(old, c)
				delete(s.contexts, other)
			}
		}
	} else if c := s.contexts[id]; c != nil {
		if view < c.view.Load() || !c.mayUse(ctx) {
			s.mu.Unlock()
			return nil, status.InvalidArgumentf("EagerService:CreateContext failed. Context id: <%d> already exists.", id)
		}
		old = []*Context{c}
		delete(s.contexts, id)
	}
	s.mu.Unlock()
	for _, c := range old {
		c.close()
	}
	c, err := newContext(ctx, s, req)
	if err != nil {
		return nil, err
	}
	if err := s.add(id, c); err != nil {
		c.close()
		return nil, err
	}
	devices, err := s.Worker.GetStatus(s.ctx, &pb.GetStatusRequest{})
	if err != nil {
		return nil, err
	}
	s.Log.Debug("created an eager context", "context", id, "view", view, "as", c.task)
	return &pb.CreateContextResponse{DeviceAttributes: named(devices.GetDeviceAttributes(), c)}, nil
}

// named returns the devices of the task under their names in the cluster of a context.
func named(devices []*pb.DeviceAttributes, c *Context) []*pb.DeviceAttributes {
	out := make([]*pb.DeviceAttributes, len(devices))
	for i, d := range devices {
		out[i] = d
		if name := c.scope.Devices()[i].Name; name != d.GetName() {
			out[i] = proto.CloneOf(d)
			out[i].Name = name
		}
	}
	return out
}

// add adds a context and starts the sweeper.
func (s *Service) add(id uint64, c *Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return status.Unavailablef("The task %s is shutting down.", c.task)
	case s.contexts[id] != nil: // created concurrently
		return status.InvalidArgumentf("EagerService:CreateContext failed. Context id: <%d> already exists.", id)
	case len(s.contexts) >= maxContexts:
		return status.ResourceExhaustedf("the task %s has %d eager contexts already", c.task, maxContexts)
	}
	s.contexts[id] = c
	if !s.sweeping {
		s.sweeping = true
		s.running.Go(s.sweep)
	}
	return nil
}

// sweep drops contexts whose clients have vanished, while there are contexts.
func (s *Service) sweep() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.expire(s.Now()) {
			return
		}
	}
}

// expire drops the contexts that have not been used for their keep-alive. It reports whether the
// sweeper must go on.
func (s *Service) expire(now time.Time) bool {
	var stale []*Context
	s.mu.Lock()
	for id, c := range s.contexts {
		if c.isStale(now) {
			stale = append(stale, c)
			delete(s.contexts, id)
		}
	}
	goOn := len(s.contexts) > 0
	s.sweeping = goOn
	s.mu.Unlock()
	for _, c := range stale {
		s.Log.Info("dropping an eager context that its client has not used", "context", c.id, "for", c.keepAlive)
		c.close()
	}
	return goOn
}

// find returns a context that the caller may use, and records its use. The context of another
// client is answered like one that does not exist.
func (s *Service) find(ctx context.Context, id uint64) (*Context, error) {
	s.mu.Lock()
	c := s.contexts[id]
	s.mu.Unlock()
	if c == nil || !c.mayUse(ctx) {
		return nil, status.Abortedf("Unable to find a context_id matching the specified one (%d). Perhaps the worker was restarted, "+
			"or the context was GC'd?", id)
	}
	c.touch()
	return c, nil
}

// UpdateContext advances the view of a context by one and replaces its cluster.
func (s *Service) UpdateContext(ctx context.Context, req *pb.UpdateContextRequest) (*pb.UpdateContextResponse, error) {
	c, err := s.find(ctx, req.GetContextId())
	if err != nil {
		return nil, err
	}
	if err := c.update(req); err != nil {
		return nil, err
	}
	devices, err := s.Worker.GetStatus(s.ctx, &pb.GetStatusRequest{})
	if err != nil {
		return nil, err
	}
	return &pb.UpdateContextResponse{DeviceAttributes: named(devices.GetDeviceAttributes(), c)}, nil
}

// KeepAlive returns the view of a context and records its use.
func (s *Service) KeepAlive(ctx context.Context, req *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error) {
	c, err := s.find(ctx, req.GetContextId())
	if err != nil {
		return nil, err
	}
	return &pb.KeepAliveResponse{ContextViewId: c.view.Load()}, nil
}

// CloseContext drops a context. It is ignored if the context is unknown or its view is newer: a
// client that has replaced a context closes the old one later.
func (s *Service) CloseContext(ctx context.Context, req *pb.CloseContextRequest) (*pb.CloseContextResponse, error) {
	id := req.GetContextId()
	s.mu.Lock()
	c := s.contexts[id]
	if c != nil && c.mayUse(ctx) && req.GetContextViewId() >= c.view.Load() {
		delete(s.contexts, id)
	} else {
		c = nil
	}
	s.mu.Unlock()
	if c != nil {
		c.close()
		s.Log.Debug("closed an eager context", "context", id)
	}
	return &pb.CloseContextResponse{}, nil
}

// WaitQueueDone returns at once, because every request is answered when it is done.
func (s *Service) WaitQueueDone(ctx context.Context, req *pb.WaitQueueDoneRequest) (*pb.WaitQueueDoneResponse, error) {
	if _, err := s.find(ctx, req.GetContextId()); err != nil {
		return nil, err
	}
	if len(req.GetOpId()) > 0 {
		return nil, status.Unimplementedf("EagerServiceImpl::WaitQueueDone is not implemented for particular op IDs.")
	}
	return &pb.WaitQueueDoneResponse{}, nil
}

// handleOf returns the handle of a context's session.
func handleOf(id uint64) string { return fmt.Sprintf("eager_%d", id) }
