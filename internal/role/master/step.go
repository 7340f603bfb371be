package master

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
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

	life   stepctx.Context
	notice notice // guarded by session.mu

	// Of the part that the master's own task does.
	own     message.RunGraphRequest
	answer  message.RunGraphResponse
	answers [1]*message.RunGraphResponse // those of all parts, where there is no other
	cleanup pb.CleanupGraphRequest

	mu       sync.Mutex
	errs     status.Group // guarded by mu
	finished []bool       // guarded by mu; by part
	late     []int        // guarded by mu; parts that were unfinished at the deadline
}

// spare are steps that have ended and that nobody holds on to.
var spare = sync.Pool{New: func() any { return new(step) }}

// newStep returns a step that the caller should forget.
func (s *session) newStep(o *order) *step {
	st := spare.Get().(*step)
	st.session, st.plan, st.keys = s, o.plan, o.keys
	return st
}

// feed adds a tensor, which is borrowed, to what is fed.
func (st *step) feed(key string, t tensor.Tensor) {
	if key != "" { // something consumes it
		st.sends = append(st.sends, message.NamedTensor{Name: key, Tensor: t})
	}
}

// forget ends the use of a step. One that was done by the master's own task alone, and of which
// that has kept nothing, is used again.
func (st *step) forget() {
	if !st.answer.Forgotten || st.finished != nil || !st.life.TryReset() {
		return
	}
	clear(st.sends)
	clear(st.answer.Recv)
	recv := st.answer.Recv[:0]
	st.session, st.plan, st.sends, st.keys, st.exec = nil, nil, st.sends[:0], nil, nil
	st.own, st.answer, st.answers[0] = message.RunGraphRequest{}, message.RunGraphResponse{Recv: recv}, nil
	st.notice = notice{}
	spare.Put(st)
}

// newStepID returns a number for a step; the upper seven bits are 0 for uses to come.
func newStepID() int64 { return int64(rand.Uint64() >> 7) }

// run runs a step that has begun, within ctx, on all its tasks and returns what they answer, in the
// order of the plan's parts. It returns when all have: what is left of a step that has failed does
// not disturb the next one.
func (st *step) run(ctx context.Context) ([]*message.RunGraphResponse, error) {
	alone := st.plan.home == 0 && len(st.plan.parts) == 1
	if !alone {
		// before the session shows the step to others
		st.finished = make([]bool, len(st.plan.parts))
	}
	if err := st.session.enter(st); err != nil {
		return nil, err
	}
	defer st.session.leave(st)
	resps := st.answers[:]
	if alone {
		resps[0] = st.runHome(nil)
	} else {
		resps = make([]*message.RunGraphResponse, len(st.plan.parts))
		st.runAll(resps)
	}
	if err := st.outcome(ctx); err != nil {
		for _, resp := range resps {
			release(resp)
		}
		return nil, err
	}
	return resps, nil
}

// runAll runs all parts at the same time.
func (st *step) runAll(resps []*message.RunGraphResponse) {
	var wg sync.WaitGroup
	for i := range st.plan.parts {
		if i != st.plan.home {
			wg.Add(1)
			st.startPart(i, st.plan.home >= 0, func(resp *message.RunGraphResponse) {
				resps[i] = resp
				wg.Done()
			})
		}
	}
	if home := st.plan.home; home >= 0 {
		resps[home] = st.runHome(st.flush)
	}
	wg.Wait()
}

// flush sends the requests for parts, which have waited for those for tensors that the own task
// asks for first.
func (st *step) flush() {
	for i := range st.plan.parts {
		if w, ok := st.plan.parts[i].worker.(starter); ok {
			w.Flush()
		}
	}
}

// runHome runs the part of the master's own task. asked is called when that has asked for what it
// receives first.
func (st *step) runHome(asked func()) *message.RunGraphResponse {
	home := st.plan.home
	st.own = st.request(home)
	st.own.Asked, st.own.Send, st.own.RecvKeys, st.own.Into = asked, st.sends, st.keys, &st.answer
	st.own.RequestID = 0 // no network can bring it twice
	resp, err := st.plan.parts[home].worker.RunGraph(&st.life, &st.own)
	return st.endPart(home, resp, err)
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

// starter is a Worker that can be called without a goroutine that waits. done is called once, must
// not wait, and owns the response.
type starter interface {
	// Flush sends the requests that can wait for others.
	Flush()
	StartGraph(ctx context.Context, req *message.RunGraphRequest, done func(*message.RunGraphResponse, error))
	StartCleanup(ctx context.Context, req *pb.CleanupGraphRequest, done func(*pb.CleanupGraphResponse, error))
}

// startPart runs the step on one task, without waiting for it. The request may be told to wait for
// others. done is called once.
func (st *step) startPart(i int, canWait bool, done func(*message.RunGraphResponse)) {
	request := st.request(i)
	req := &request
	req.CanWait = canWait
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
func (st *step) request(i int) message.RunGraphRequest {
	return message.RunGraphRequest{
		Session: st.session.handle, SessionCreated: true, GraphHandle: st.plan.parts[i].handle, StepID: st.id, Exec: st.exec,
		IsPartial: st.partial, IsLastPartial: st.last, StoreErrorsInBody: true, RequestID: requestid.New(),
	}
}

// endPart takes note of what a task has answered. The first error that does not follow from another
// one ends the other parts.
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
	if st.isOverdue() && (status.IsDerived(err) || status.CodeOf(err) == status.Cancelled || status.CodeOf(err) == status.DeadlineExceeded) {
		st.late = append(st.late, i)
		err = status.From(err).Derive()
	}
	failed := st.errs.HasRoot()
	task := st.plan.parts[i].task
	st.errs.Add(fromTask(task, err))
	if !failed && st.errs.HasRoot() {
		st.life.Cancel(status.Cancelledf("The step has failed on %v.", task).Derive())
	}
	return resp
}

// isOverdue reports whether the step has reached its deadline.
func (st *step) isOverdue() bool { return errors.Is(st.life.Err(), context.DeadlineExceeded) }

// unfinished returns the tasks whose parts have not ended.
func (st *step) unfinished() []unfinished {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []unfinished
	for i := range st.plan.parts {
		if i >= len(st.finished) || !st.finished[i] {
			out = append(out, st.plan.parts[i].unfinished())
		}
	}
	return out
}

// unfinished returns the part as one whose task has not answered.
func (pt *part) unfinished() unfinished { return unfinished{pt.task, "RunGraph (" + pt.nodes + ")"} }

// outcome returns the error of the step. The reason for which it was ended from outside explains
// more than what its tasks make of that.
func (st *step) outcome(ctx context.Context) error {
	err := st.errs.Concatenated()
	if err == nil || status.CodeOf(err) != status.Cancelled && !status.IsDerived(err) {
		return err
	}
	if closed := st.session.closeReason(); closed != nil {
		return closed
	}
	switch {
	case st.isOverdue() && errors.Is(context.Cause(&st.life), errTimeout):
		var late []unfinished
		for _, i := range st.late {
			late = append(late, st.plan.parts[i].unfinished())
		}
		return st.session.timedOut(ctx, fmt.Sprintf("Step %d of session %s", st.id, st.session.handle), late)
	case ctx.Err() != nil:
		return status.FromContext(ctx, "running the step")
	}
	return err
}

// cleanup lets all tasks of a step forget it. Nobody waits for that: a task that cannot be reached
// has nothing to forget. req is for the master's own task, and is borrowed.
func (s *session) cleanup(p *plan, req *pb.CleanupGraphRequest) {
	for i := range p.parts {
		if i == p.home {
			_, _ = p.parts[i].worker.CleanupGraph(s.ctx, req) // the own worker only forgets
			continue
		}
		s.startCleanup(&p.parts[i], req.GetStepId())
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

// fetched returns the tensors under the given keys, which the master's own task fetched, and takes
// their references.
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
