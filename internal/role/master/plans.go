package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// maxPlans bounds the plans that a session keeps. Without a bound, a client that adds nodes for
// every step would fill the memory of all tasks.
const maxPlans = 1024

// plan returns the plan of a signature once it is ready, with one more user, who must call release.
// The first request starts to make the plan; every request waits until its own context ends. A plan
// that could not be made is forgotten, so that the next request tries again.
func (s *session) plan(ctx context.Context, sig signature) (*plan, error) {
	key := sig.key()
	s.mu.Lock()
	p := s.plans[key]
	if p == nil {
		p = s.keepLocked(key)
		state := s.graph
		s.master.background.Go(func() {
			s.makePlan(p, state, planRequest{signature: sig})
			if p.err != nil {
				s.forget(p)
			}
		})
	}
	s.useLocked(p)
	s.mu.Unlock()
	return s.await(ctx, p)
}

// newPlan returns an empty plan with one user.
func newPlan(key string) *plan {
	return &plan{ready: make(chan struct{}), local: -1, key: key, users: 1}
}

// await waits until a plan is ready. On error it ends the caller's use of the plan.
func (s *session) await(ctx context.Context, p *plan) (*plan, error) {
	var err error
	select {
	case <-p.ready:
		if err = p.err; err != nil {
			s.forget(p) // before the caller can retry
		}
	case <-ctx.Done():
		err = s.unprepared(ctx, p)
	}
	if err != nil {
		s.release(p)
		return nil, err
	}
	return p, nil
}

// unprepared returns the error of a request that has given up waiting for a plan.
func (s *session) unprepared(ctx context.Context, p *plan) error {
	err := status.FromContext(ctx, "preparing the step")
	if err != errTimeout {
		return err
	}
	w := ctx.Value(waiterKey{}).(waiter)
	var tasks []unfinished
	for _, t := range p.registering.list() {
		tasks = append(tasks, unfinished{t, "RegisterGraph"})
	}
	if len(tasks) == 0 {
		what := "The master has not finished preparing the step in session " + s.handle + "."
		return errTimeout.Annotate(" %s", s.master.overtime(what, w.limited))
	}
	return s.timedOut(w.client, s.master.overtime("Preparing a step of session "+s.handle, w.limited), tasks)
}

// keepLocked adds a plan to session.plans. If there are too many, it removes the least recently
// used one.
func (s *session) keepLocked(key string) *plan {
	if len(s.plans) >= maxPlans {
		var oldest *plan
		for _, p := range s.plans {
			if oldest == nil || p.used < oldest.used {
				oldest = p
			}
		}
		delete(s.plans, oldest.key)
		s.releaseLocked(oldest)
	}
	p := newPlan(key)
	s.plans[key] = p
	return p
}

// useLocked adds a user to a plan. The caller must call release.
func (s *session) useLocked(p *plan) {
	p.users++
	s.planUses++
	p.used = s.planUses
}

// forget removes a plan from session.plans.
func (s *session) forget(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plans[p.key] == p {
		delete(s.plans, p.key)
		s.releaseLocked(p)
	}
}

// release ends the use of a plan.
func (s *session) release(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(p)
}

// releaseLocked ends one use of a plan. The last one deregisters its graphs on all tasks, unless
// the session is closed: then they end with the session.
func (s *session) releaseLocked(p *plan) {
	if p.users--; p.users == 0 && s.closed == nil {
		s.master.background.Go(func() { s.deregister(p, func(*planPartition) bool { return true }) })
	}
}

// deregister drops the graphs of a plan whose partitions are selected. Errors are logged.
func (s *session) deregister(p *plan, selected func(*planPartition) bool) {
	<-p.ready
	ctx, cancel := context.WithTimeout(s.master.ctx, cleanupTimeout)
	defer cancel()
	err := forEachConcurrently(len(p.partitions), func(i int) error {
		pt := &p.partitions[i]
		if pt.handle == "" /* not registered */ || !selected(pt) {
			return nil
		}
		_, err := pt.worker.DeregisterGraph(ctx, &pb.DeregisterGraphRequest{
			SessionHandle: s.handle, CreateWorkerSessionCalled: pt.inSession, GraphHandle: pt.handle,
		})
		return err
	})
	if err != nil {
		s.master.Log.Debug("a task did not drop a graph", "session", s.handle, "error", err)
	}
}
