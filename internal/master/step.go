package master

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/lifetime"
	"github.com/weft-ml/weft/internal/message"
	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/internal/requestid"
	"github.com/weft-ml/weft/status"
)

// step is one step under way, or one call of a step that is run in pieces.
type step struct {
	session *session
	plan    *plan
	id      int64
	sends   []message.NamedTensor // what is fed, by rendezvous key, borrowed
	keys    []string              // what is fetched, by rendezvous key
	exec    *pb.ExecutorOpts      // may be nil
	partial bool
	last    bool // of the calls of a step that is run in pieces

	life   lifetime.Context
	failed time.Time // when the step was first seen to have failed; guarded by session.mu

	mu       sync.Mutex
	errs     status.Group // guarded by mu
	finished []bool       // guarded by mu; by part
}

// newStepID returns a number for a step; the upper seven bits are 0 for uses to come.
func newStepID() int64 { return int64(rand.Uint64() >> 7) }

// run runs the step on all its tasks and returns what they answer, in the order of the plan's parts. It returns when all
// have: what is left of a step that has failed does not disturb the next one.
func (st *step) run(ctx context.Context) ([]*message.RunGraphResponse, error) {
	st.life.Begin(ctx)
	defer st.life.Finish()
	if err := st.session.enter(st); err != nil {
		return nil, err
	}
	defer st.session.leave(st)
	if len(st.plan.parts) > 1 {
		st.finished = make([]bool, len(st.plan.parts))
	}
	resps := make([]*message.RunGraphResponse, len(st.plan.parts))
	var wg sync.WaitGroup
	for i := range st.plan.parts {
		if i != st.plan.home {
			wg.Add(1)
			st.startPart(i, func(resp *message.RunGraphResponse) {
				resps[i] = resp
				wg.Done()
			})
		}
	}
	if home := st.plan.home; home >= 0 {
		resp, err := st.plan.parts[home].worker.RunGraph(&st.life, st.request(home))
		resps[home] = st.endPart(home, resp, err)
	}
	wg.Wait()
	if err := st.outcome(ctx); err != nil {
		for _, resp := range resps {
			release(resp)
		}
		return nil, err
	}
	return resps, nil
}

// release ends the references of a response that nobody wants.
func release(resp *message.RunGraphResponse) {
	if resp == nil {
		return
	}
	for i := range resp.Recv {
		resp.Recv[i].Tensor.Release()
	}
}

// starter is a Worker that can be called without a goroutine that waits. done is called once, must not wait, and owns the
// response.
type starter interface {
	StartGraph(ctx context.Context, req *message.RunGraphRequest, done func(*message.RunGraphResponse, error))
	StartCleanup(ctx context.Context, req *pb.CleanupGraphRequest, done func(*pb.CleanupGraphResponse, error))
}

// startPart runs the step on one task, without waiting for it. done is called once.
func (st *step) startPart(i int, done func(*message.RunGraphResponse)) {
	req := st.request(i)
	if w, ok := st.plan.parts[i].worker.(starter); ok {
		w.StartGraph(&st.life, req, func(resp *message.RunGraphResponse, err error) { done(st.endPart(i, resp, err)) })
		return
	}
	go func() {
		resp, err := st.plan.parts[i].worker.RunGraph(&st.life, req)
		done(st.endPart(i, resp, err))
	}()
}

// request asks a task for its part.
func (st *step) request(i int) *message.RunGraphRequest {
	req := &message.RunGraphRequest{
		Session: st.session.handle, SessionCreated: true, GraphHandle: st.plan.parts[i].handle, StepID: st.id, Exec: st.exec,
		IsPartial: st.partial, IsLastPartial: st.last, StoreErrorsInBody: true, RequestID: requestid.New(),
	}
	if i == st.plan.home {
		req.Send, req.RecvKeys = st.sends, st.keys
	}
	return req
}

// endPart takes note of what a task has answered. The first error that does not follow from another one ends the other
// parts.
func (st *step) endPart(i int, resp *message.RunGraphResponse, err error) *message.RunGraphResponse {
	if err == nil && resp.Err != nil {
		err = resp.Err
	}
	if err == nil && st.finished == nil {
		return resp
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.finished != nil {
		st.finished[i] = true
	}
	if err == nil {
		return resp
	}
	failed := st.errs.HasRoot()
	task := st.plan.parts[i].task
	st.errs.Add(fromTask(task, err))
	if !failed && st.errs.HasRoot() {
		st.life.Cancel(status.Cancelledf("The step has failed on %v.", task).Derive())
	}
	return resp
}

// unfinished returns the tasks whose parts have not ended.
func (st *step) unfinished() []cluster.Task {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []cluster.Task
	for i := range st.plan.parts {
		if i >= len(st.finished) || !st.finished[i] {
			out = append(out, st.plan.parts[i].task)
		}
	}
	return out
}

// outcome returns the error of the step. The reason for which it was ended from outside explains more than what its tasks
// make of that.
func (st *step) outcome(ctx context.Context) error {
	err := st.errs.Concatenated()
	if err == nil || status.CodeOf(err) != status.Cancelled && !status.IsDerived(err) {
		return err
	}
	if closed := st.session.closeReason(); closed != nil {
		return closed
	}
	if ctx.Err() != nil {
		return status.FromContext(ctx, "running the step")
	}
	return err
}

// cleanup lets all tasks of a step forget it. Nobody waits for that: a task that cannot be reached has nothing to forget.
func (s *session) cleanup(p *plan, id int64) {
	for i := range p.parts {
		if i == p.home {
			_, _ = p.parts[i].worker.CleanupGraph(s.ctx, &pb.CleanupGraphRequest{StepId: id}) // the own worker only forgets
			continue
		}
		s.startCleanup(&p.parts[i], id)
	}
}

// startCleanup lets one task forget a step, without waiting for it.
func (s *session) startCleanup(pt *part, id int64) {
	w, ok := pt.worker.(starter)
	if !ok {
		s.master.background.Go(func() { s.cleanupPart(pt, id) })
		return
	}
	leave := s.master.background.enter()
	w.StartCleanup(s.master.ctx, &pb.CleanupGraphRequest{StepId: id}, func(_ *pb.CleanupGraphResponse, err error) {
		s.endCleanup(pt, id, err)
		leave()
	})
}

func (s *session) cleanupPart(pt *part, id int64) {
	ctx, cancel := context.WithTimeout(s.master.ctx, cleanupTimeout)
	defer cancel()
	_, err := pt.worker.CleanupGraph(ctx, &pb.CleanupGraphRequest{StepId: id})
	s.endCleanup(pt, id, err)
}

func (s *session) endCleanup(pt *part, id int64, err error) {
	if err != nil {
		s.master.Log.Debug("a task did not clean a step up", "step", id, "task", pt.task, "error", err)
	}
}

// fetched returns the tensors under the given keys, which the master's own task fetched, and takes their references.
func (st *step) fetched(resps []*message.RunGraphResponse) ([]message.NamedTensor, error) {
	if len(st.keys) == 0 {
		return nil, nil
	}
	got := resps[st.plan.home].Recv
	resps[st.plan.home].Recv = nil
	isAt := func(t message.NamedTensor, key string) bool { return t.Name == key }
	if slices.EqualFunc(got, st.keys, isAt) {
		return got, nil
	}
	byKey := make(map[string]message.NamedTensor, len(got))
	for _, t := range got {
		byKey[t.Name] = t
	}
	out := make([]message.NamedTensor, len(st.keys))
	for i, key := range st.keys {
		t, ok := byKey[key]
		if !ok {
			return nil, status.Internalf("Worker did not return a value for fetch: %s", key)
		}
		out[i] = t
	}
	for _, t := range got {
		if !slices.Contains(st.keys, t.Name) {
			return nil, status.Internalf("Unexpected fetch key: %s", t.Name)
		}
	}
	return out, nil
}
