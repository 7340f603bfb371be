package master

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/recorder"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// step is one running step, or one call of a partial run.
type step struct {
	session *session
	plan    *plan
	id      int64
	sends   []message.NamedTensor // feeds by rendezvous key; borrowed
	keys    []string              // rendezvous keys of the fetches
	exec    *pb.ExecutorOpts      // may be nil
	partial bool
	last    bool // last call of a partial run
	limited bool // its deadline is that of --max-step-time

	ctx    stepctx.Context
	notice notice // guarded by session.mu

	// Request and response of the local partition.
	localReq   message.RunGraphRequest
	localResp  message.RunGraphResponse
	localResps [1]*message.RunGraphResponse // responses of a step with the local partition alone
	cleanup    pb.CleanupGraphRequest

	mu       sync.Mutex
	errs     status.Group // guarded by mu
	failed   cluster.Task // of the first error in errs that is not derived; guarded by mu
	finished []bool       // by partition; guarded by mu
	late     []int        // partitions that were unfinished at the deadline; guarded by mu
}

// stepPool is a free list of steps that nothing refers to.
var stepPool = sync.Pool{New: func() any { return new(step) }}

// newStep returns a step. The caller should recycle it.
func (s *session) newStep(k *requestKey) *step {
	st := stepPool.Get().(*step)
	st.session, st.plan, st.keys = s, k.plan, k.keys
	return st
}

// feed adds a tensor, which is borrowed, to the feeds.
func (st *step) feed(key string, t tensor.Tensor) {
	if key != "" { // it has a consumer
		st.sends = append(st.sends, message.NamedTensor{Name: key, Tensor: t})
	}
}

// recycle puts a step into the free list, if it ran on the master's own task alone and the worker
// has kept no reference to it.
func (st *step) recycle() {
	if !st.localResp.Recyclable || st.finished != nil || !st.ctx.TryReset() {
		return
	}
	clear(st.sends)
	clear(st.localResp.Recv)
	recv := st.localResp.Recv[:0]
	st.session, st.plan, st.sends, st.keys, st.exec = nil, nil, st.sends[:0], nil, nil
	st.localReq, st.localResp, st.localResps[0] = message.RunGraphRequest{}, message.RunGraphResponse{Recv: recv}, nil
	st.notice = notice{}
	stepPool.Put(st)
}

// newStepID returns a random number for a step. TensorFlow reserves the upper bits.
func newStepID() int64 { return int64(rand.Uint64() >> 7) }

// run runs a step that has begun on all its tasks and returns their responses, in the order of the
// plan's partitions. It returns when all have answered, so that the remains of a failed step do not
// disturb the next one.
func (st *step) run(ctx context.Context) ([]*message.RunGraphResponse, error) {
	o := st.session.master.Observer
	if o == nil {
		return st.execute(ctx)
	}
	began := mono.Nanos()
	o.StepBegan()
	resps, err := st.execute(ctx)
	o.StepEnded(uint32(status.CodeOf(err)), time.Duration(mono.Nanos()-began))
	return resps, err
}

// execute is run without an observer.
func (st *step) execute(ctx context.Context) ([]*message.RunGraphResponse, error) {
	if recording := st.session.master.Recorder.Current(); recording != nil {
		start := time.Now()
		defer func() { st.record(recording, start) }()
	}
	alone := st.plan.local == 0 && len(st.plan.partitions) == 1
	if !alone {
		// before enter, which makes the step visible to other goroutines
		st.finished = make([]bool, len(st.plan.partitions))
	}
	if err := st.session.enter(st); err != nil {
		return nil, err
	}
	defer st.session.leave(st)
	resps := st.localResps[:]
	if alone {
		resps[0] = st.runLocal(nil)
	} else {
		resps = make([]*message.RunGraphResponse, len(st.plan.partitions))
		st.runAll(resps)
	}
	if err := st.outcome(ctx); err != nil {
		st.session.master.failures.add(st, err)
		for _, resp := range resps {
			release(resp)
		}
		return nil, err
	}
	return resps, nil
}

// record adds the finished step to a recording.
func (st *step) record(recording *recorder.Recording, start time.Time) {
	recording.Step(recorder.Step{
		ID: st.id, Session: st.session.shownHandle(), Start: start, End: time.Now(), Code: int32(status.CodeOf(st.errs.Concatenated())),
	})
}

// runAll runs all partitions concurrently and waits for them.
func (st *step) runAll(resps []*message.RunGraphResponse) {
	var wg sync.WaitGroup
	for i := range st.plan.partitions {
		if i != st.plan.local {
			wg.Add(1)
			st.startPartition(i, st.plan.local >= 0, func(resp *message.RunGraphResponse) {
				resps[i] = resp
				wg.Done()
			})
		}
	}
	if local := st.plan.local; local >= 0 {
		resps[local] = st.runLocal(st.flush)
	}
	wg.Wait()
}

// flush sends the RunGraph requests that were delayed, so that they share packets with the first
// requests for tensors.
func (st *step) flush() {
	for i := range st.plan.partitions {
		if w, ok := st.plan.partitions[i].worker.(starter); ok {
			w.Flush()
		}
	}
}

// runLocal runs the local partition. onReceivesSent is called when the worker has sent the requests
// for the tensors that the partition receives first.
func (st *step) runLocal(onReceivesSent func()) *message.RunGraphResponse {
	local := st.plan.local
	st.localReq = st.request(local)
	st.localReq.OnReceivesSent, st.localReq.Send, st.localReq.RecvKeys, st.localReq.Into = onReceivesSent, st.sends, st.keys, &st.localResp
	st.localReq.RequestID = 0 // there is no transport that could deliver the request twice
	resp, err := st.plan.partitions[local].worker.RunGraph(&st.ctx, &st.localReq)
	return st.endPartition(local, resp, err)
}

// release releases the tensors of an unused response.
func release(resp *message.RunGraphResponse) {
	if resp == nil {
		return
	}
	for i := range resp.Recv {
		resp.Recv[i].Tensor.Release()
	}
}

// starter is a Worker that can be called asynchronously. done is called once, must not block, and
// owns the response.
type starter interface {
	// Flush sends the delayed requests.
	Flush()
	StartGraph(ctx context.Context, req *message.RunGraphRequest, done func(*message.RunGraphResponse, error))
	StartCleanup(ctx context.Context, req *pb.CleanupGraphRequest, done func(*pb.CleanupGraphResponse, error))
}

// startPartition runs the step on one task, without waiting for it. A request that can wait is sent
// with the next Flush. done is called once.
func (st *step) startPartition(i int, canWait bool, done func(*message.RunGraphResponse)) {
	if err := failpoint.Hit("master/run-graph"); err != nil {
		done(st.endPartition(i, nil, err))
		return
	}
	request := st.request(i)
	req := &request
	req.CanWait = canWait
	if w, ok := st.plan.partitions[i].worker.(starter); ok {
		w.StartGraph(&st.ctx, req, func(resp *message.RunGraphResponse, err error) { done(st.endPartition(i, resp, err)) })
		return
	}
	go func() {
		resp, err := st.plan.partitions[i].worker.RunGraph(&st.ctx, req)
		done(st.endPartition(i, resp, err))
	}()
}

// request returns the request for a partition.
func (st *step) request(i int) message.RunGraphRequest {
	return message.RunGraphRequest{
		Session: st.session.handle, SessionCreated: st.plan.partitions[i].inSession, GraphHandle: st.plan.partitions[i].handle, StepID: st.id, Exec: st.exec,
		IsPartial: st.partial, IsLastPartial: st.last, StoreErrorsInBody: true, RequestID: requestid.New(),
	}
}

// endPartition records the outcome of a partition. The first error that is not derived from another
// one cancels the other partitions.
func (st *step) endPartition(i int, resp *message.RunGraphResponse, err error) *message.RunGraphResponse {
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
	task := st.plan.partitions[i].task
	st.errs.Add(fromTask(task, err))
	if !failed && st.errs.HasRoot() {
		st.failed = task
		st.ctx.Cancel(status.Cancelledf("The step has failed on %v.", task).Derive())
	}
	return resp
}

// isOverdue reports whether the step has reached its deadline.
func (st *step) isOverdue() bool { return errors.Is(st.ctx.Err(), context.DeadlineExceeded) }

// unfinished describes the partition as one whose task has not answered.
func (st *step) unfinished() []unfinished {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []unfinished
	for i := range st.plan.partitions {
		if i >= len(st.finished) || !st.finished[i] {
			out = append(out, st.plan.partitions[i].unfinished())
		}
	}
	return out
}

// unfinished returns the part as one whose task has not answered.
func (pt *planPartition) unfinished() unfinished {
	return unfinished{pt.task, "RunGraph (" + pt.nodes + ")"}
}

// outcome returns the error of the step. If the step was ended from outside, it returns the reason
// for that, because the errors of the tasks only follow from it.
func (st *step) outcome(ctx context.Context) error {
	err := st.errs.Concatenated()
	if err == nil || status.CodeOf(err) != status.Cancelled && !status.IsDerived(err) {
		return err
	}
	if closed := st.session.closeReason(); closed != nil {
		return closed
	}
	switch {
	case st.isOverdue() && errors.Is(context.Cause(&st.ctx), errTimeout):
		var late []unfinished
		for _, i := range st.late {
			late = append(late, st.plan.partitions[i].unfinished())
		}
		what := fmt.Sprintf("Step %d of session %s", st.id, st.session.handle)
		return st.session.timedOut(ctx, st.session.master.overtime(what, st.limited), late)
	case ctx.Err() != nil:
		return status.FromContext(ctx, "running the step")
	}
	return err
}

// cleanup makes all tasks of a step forget it, without waiting. req is for the master's own task,
// and is borrowed.
func (s *session) cleanup(p *plan, req *pb.CleanupGraphRequest) {
	for i := range p.partitions {
		if i == p.local {
			// it cannot fail on the own worker
			_, _ = p.partitions[i].worker.CleanupGraph(s.ctx, req)
			continue
		}
		s.startCleanup(&p.partitions[i], req.GetStepId())
	}
}

// startCleanup makes one task forget a step, without waiting for it.
func (s *session) startCleanup(pt *planPartition, id int64) {
	w, ok := pt.worker.(starter)
	if !ok {
		s.master.background.Go(func() { s.cleanupPartition(pt, id) })
		return
	}
	leave, cleaned := s.master.background.enter(), s.cleanups.enter()
	w.StartCleanup(s.master.ctx, &pb.CleanupGraphRequest{StepId: id}, func(_ *pb.CleanupGraphResponse, err error) {
		s.endCleanup(pt, id, err)
		cleaned()
		leave()
	})
}

func (s *session) cleanupPartition(pt *planPartition, id int64) {
	defer s.cleanups.enter()()
	ctx, cancel := context.WithTimeout(s.master.ctx, cleanupTimeout)
	defer cancel()
	_, err := pt.worker.CleanupGraph(ctx, &pb.CleanupGraphRequest{StepId: id})
	s.endCleanup(pt, id, err)
}

func (s *session) endCleanup(pt *planPartition, id int64, err error) {
	if err != nil {
		s.master.Log.Debug("a task did not clean a step up", "session", s.handle, "step", id, "peer", pt.task, "error", err)
	}
}

// fetched returns the tensors under the keys of the step, and takes over their references from the
// response of the local partition.
func (st *step) fetched(resps []*message.RunGraphResponse) ([]message.NamedTensor, error) {
	if len(st.keys) == 0 {
		return nil, nil
	}
	got := resps[st.plan.local].Recv
	resps[st.plan.local].Recv = nil
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
