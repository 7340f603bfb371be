package worker

import (
	"context"
	"strings"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Scope is the session of an eager context on this task: the devices, the other tasks, and the
// steps in which its operations and functions run. It has a lasting step, in which operations that
// run one by one exchange tensors, and any number of others. Its methods may be called
// concurrently.
type Scope struct {
	worker  *Worker
	lasting int64 // number of the lasting step

	mu      sync.Mutex
	session *session // guarded by mu
}

// ScopeConfig describes a scope.
type ScopeConfig struct {
	Handle  string        // of its session; unique among all sessions
	Lasting int64         // number of the lasting step
	Server  *pb.ServerDef // the cluster, and this task in it
	Devices []*pb.DeviceAttributes
	Isolate bool   // the scope has resources of its own
	Tenant  string // whose resources it uses; "" for those of all who have none
}

// OpenScope returns a new scope. The caller must call Close.
func (w *Worker) OpenScope(cfg *ScopeConfig) (*Scope, error) {
	s, err := w.scopeSession(cfg)
	if err != nil {
		return nil, err
	}
	scope := &Scope{worker: w, lasting: cfg.Lasting, session: s}
	s.scope = scope
	w.mu.Lock()
	closed, exists := w.closed, w.sessions[s.handle] != nil
	if !closed && !exists {
		w.sessions[s.handle] = s
	}
	w.mu.Unlock()
	switch {
	case closed:
		return nil, status.Unavailablef("The task %v is shutting down.", w.Task)
	case exists:
		return nil, status.AlreadyExistsf("The session %s exists already.", s.handle)
	}
	if err := w.steps.beginLasting(cfg.Lasting, s); err != nil {
		w.remove(s.handle)
		return nil, err
	}
	return scope, nil
}

func (w *Worker) scopeSession(cfg *ScopeConfig) (*session, error) {
	req := &pb.CreateWorkerSessionRequest{
		SessionHandle: cfg.Handle, ServerDef: cfg.Server, ClusterDeviceAttributes: cfg.Devices, IsolateSessionState: cfg.Isolate,
	}
	peer.Delegate(req, cfg.Tenant, "")
	return w.makeSession(req)
}

// Update replaces the tasks and devices of the cluster. Steps that run keep the old ones.
func (s *Scope) Update(server *pb.ServerDef, devices []*pb.DeviceAttributes) error {
	old := s.current()
	fresh, err := s.worker.scopeSession(&ScopeConfig{Handle: old.handle, Server: server, Devices: devices, Tenant: old.tenant})
	if err != nil {
		return err
	}
	if fresh.task != old.task {
		return status.InvalidArgumentf("the task %v cannot become %v in the same context", old.task, fresh.task)
	}
	fresh.scope, fresh.devices, fresh.private, fresh.account = s, old.devices, old.private, old.account
	s.worker.mu.Lock()
	alive := s.worker.sessions[old.handle] == old
	if alive {
		s.worker.sessions[old.handle] = fresh
	}
	s.worker.mu.Unlock()
	if !alive {
		return s.worker.sessionNotFound(old.handle)
	}
	s.mu.Lock()
	s.session = fresh
	s.mu.Unlock()
	return nil
}

// Close ends all runs of the scope and drops its steps.
func (s *Scope) Close() { s.worker.remove(s.current().handle) }

func (s *Scope) current() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// Task returns the name of this task in the cluster of the scope.
func (s *Scope) Task() cluster.Task { return s.current().task }

// Devices returns the devices of this task. They must not be modified.
func (s *Scope) Devices() []*kernel.Device { return s.current().devices }

// Has reports whether a task is part of the scope's cluster.
func (s *Scope) Has(task cluster.Task) bool { return s.current().admits(task) }

// Remote returns the incarnations of the devices of other tasks, by full name. The map must not be
// modified.
func (s *Scope) Remote() map[string]uint64 { return s.current().shared }

// Account returns what pays for the memory of the scope; nil for none.
func (s *Scope) Account() *membudget.Account { return s.current().account }

// Peer returns another task of the cluster.
func (s *Scope) Peer(task string) (Peer, error) {
	session := s.current()
	if session.peers == nil {
		return nil, status.InvalidArgumentf("Could not find worker with target: %s", task)
	}
	return session.peers.Peer(task)
}

// Run is one use of a step of a scope: of its kernels and of its rendezvous.
type Run struct{ run }

// Begin joins a step, which it creates if necessary. The context of the run ends with ctx, with the
// step and with the scope. leader is the task that leads the collective groups; "" for this one.
// The caller must call End.
func (s *Scope) Begin(ctx context.Context, step int64, leader string) (*Run, error) {
	r := &Run{}
	r.worker, r.session = s.worker, s.current()
	r.view.Cancel = r.fail
	r.ctx.Begin(ctx)
	var err error
	if r.step, err = s.worker.steps.begin(step, &r.run); err != nil {
		r.ctx.Finish()
		return nil, err
	}
	if r.session.isClosed() {
		s.worker.steps.finish(r.step, &r.run)
		r.ctx.Finish()
		if step != s.lasting {
			s.worker.steps.cleanup(step)
		}
		return nil, s.worker.sessionNotFound(r.session.handle)
	}
	r.step.markHeld()
	r.ctx.Notify(&r.run)
	v := &r.view
	v.ID, v.Context, v.Rendezvous, v.Resources, v.Session = step, &r.ctx, &r.run, &r.local, r.session.handle
	v.NewRendezvous = rendezvous.NewForStep
	v.Account = s.worker.Quota.StepAccount(r.session.account)
	if r.session.peers != nil {
		c := &collective.Step{
			Manager: r.worker.Collectives, ID: step, Self: r.session.task.String(), Leader: leader, Buffers: &r.step.buffers,
			Peers: members{r.worker, r.session.peers},
		}
		if step == s.lasting {
			c.ID, c.Buffers = singleStep, &r.worker.steps.single
		}
		v.Collectives = c
	}
	return r, nil
}

// Step returns the step, as kernels see it.
func (r *Run) Step() *kernel.Step { return &r.view }

// Fail ends the run with an error, and the exchange of tensors in its step, unless that is the
// lasting one.
func (r *Run) Fail(err error) { r.fail(err) }

// Err returns why the context of the run has ended, or nil.
func (r *Run) Err() error {
	if r.ctx.Err() == nil {
		return nil
	}
	return status.FromContext(&r.ctx, "running an operation")
}

// End ends the run. No kernel of it may be running.
func (r *Run) End() {
	r.ctx.StopNotify()
	r.local.ClearAll()
	r.ctx.Finish()
	r.worker.steps.finish(r.step, &r.run)
}

// Cleanup ends a step: values that were sent and not received are dropped. An unknown step is no
// error. The lasting step of a scope stays.
func (s *Scope) Cleanup(step int64) {
	s.worker.steps.cleanupOf(step, s.current())
}

// cleanupOf ends a step if it is one of a session and not lasting.
func (s *steps) cleanupOf(id int64, owner *session) {
	s.mu.Lock()
	st := s.byID[id]
	if st == nil || st.lasting || st.session == nil || !owner.owns(st.session) {
		s.mu.Unlock()
		return
	}
	s.removeLocked(st, errCleanedUp)
}

// beginLasting creates the lasting step of a scope. Peers may have requested tensors of it already.
func (s *steps) beginLasting(id int64, owner *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	switch {
	case s.err != nil:
		return s.err
	case st == nil:
		st = s.addLocked(id)
	case st.session != nil:
		return status.AlreadyExistsf("Step %d exists already.", id)
	default:
		s.removeEarlyLocked(st)
		st.stopTimerLocked()
	}
	st.session, st.lasting = owner, true
	st.markHeld()
	return nil
}

// isLasting reports whether a step is the lasting one of a scope.
func (s *steps) isLasting(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.byID[id]
	return st != nil && st.lasting
}

// owns reports whether a step of other is one of s: they are the same session, or states of the
// same scope.
func (s *session) owns(other *session) bool {
	return s == other || s.scope != nil && s.scope == other.scope
}

// recvLasting receives a tensor of the lasting step that this task sends to itself. Its consumer is
// forgotten when the run ends.
func (r *run) recvLasting(key *kernel.Key, at kernel.FrameIter, done func(t tensor.Tensor, dead bool, err error)) {
	text := strings.Clone(key.At(at))
	r.ctx.Arm()
	go func() { done(r.step.table.Await(&r.ctx, text)) }()
}
