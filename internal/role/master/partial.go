package master

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/status"
)

// partialRun is a step that its client runs in several calls: each call feeds some of the announced
// feeds and takes some of the announced fetches. It ends with the last of them, or with the first
// error of a task.
type partialRun struct {
	plan *plan // has a user until the end of the run
	id   int64

	calls  atomic.Int32 // that run
	active atomic.Bool  // called since the last tick of watch
	used   time.Time    // time of the last tick that found it called; owned by watch

	mu      sync.Mutex
	feeds   map[string]bool // guarded by mu; whether each has been fed
	fetches map[string]bool // guarded by mu; whether each has been fetched
}

// PartialRunSetup announces a partial run and returns its handle.
func (m *Master) PartialRunSetup(ctx context.Context, req *pb.PartialRunSetupRequest) (*pb.PartialRunSetupResponse, error) {
	if err := m.recent.Track(req.GetRequestId(), "PartialRunSetup (Master)", req.GetSessionHandle()); err != nil {
		return nil, err
	}
	s, err := m.use(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	if err := m.checkNames(len(req.GetFeed()), len(req.GetFetch()), len(req.GetTarget())); err != nil {
		return nil, err
	}
	if s.closeReason() != nil {
		return nil, errClosed
	}
	p, err := s.plan(ctx, signature{
		feeds: sorted(req.GetFeed()), fetches: sorted(req.GetFetch()), targets: sorted(req.GetTarget()), partial: true,
	})
	if err != nil {
		return nil, err
	}
	p.runs.Add(1)
	run := &partialRun{plan: p, id: newStepID(), feeds: map[string]bool{}, fetches: map[string]bool{}}
	run.active.Store(true)
	for _, name := range req.GetFeed() {
		run.feeds[name] = false
	}
	for _, name := range req.GetFetch() {
		run.fetches[name] = false
	}
	handle, err := s.addPartial(run)
	if err != nil {
		return nil, err
	}
	return &pb.PartialRunSetupResponse{PartialRunHandle: handle}, nil
}

// addPartial registers a partial run and returns its handle. It releases the plan of a run that is
// one too many.
func (s *session) addPartial(run *partialRun) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.master.Quota.Check(quota.PartialRuns, len(s.partials)+1); err != nil {
		s.releaseLocked(run.plan)
		return "", err
	}
	handle := strconv.FormatInt(s.nextPartial, 10)
	s.nextPartial++
	s.partials[handle] = run
	return handle, nil
}

// runPartial runs one call of a partial run.
func (s *session) runPartial(ctx context.Context, d deadline, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	s.mu.Lock()
	run, state, closed := s.partials[req.PartialRun], s.graph, s.closed
	s.mu.Unlock()
	switch {
	case closed != nil:
		return nil, errClosed
	case run == nil:
		return nil, status.InvalidArgumentf("Must run PartialRunSetup before performing partial runs")
	case req.Options.GetExperimental().GetCollectiveGraphKey() != 0:
		return nil, status.InvalidArgumentf("PartialRun does not support Collective ops.  collective_graph_key must be " +
			"kNoCollectiveGraphKey.")
	}
	run.calls.Add(1)
	defer func() {
		run.active.Store(true)
		run.calls.Add(-1)
	}()
	last, err := run.take(req, state.graph)
	if err != nil {
		return nil, err
	}
	st := &step{session: s, plan: run.plan, id: run.id, partial: true, last: last}
	for i := range req.Feeds {
		st.feed(run.plan.feedKeys[req.Feeds[i].Name], req.Feeds[i].Tensor)
	}
	for _, name := range req.Fetches {
		st.keys = append(st.keys, run.plan.fetchKeys[name])
	}
	if tracer := s.master.Tracer; tracer != nil {
		traced, end := tracer.StepBegan(ctx, s.shownHandle(), len(run.plan.partitions))
		defer func() { end(run.id, err) }()
		ctx = traced
	}
	st.begin(ctx, d)
	defer st.ctx.Finish()
	resps, err := st.run(ctx)
	if err != nil || last {
		s.endPartial(req.PartialRun, run)
	}
	if err != nil {
		return nil, err
	}
	tensors, err := st.fetched(resps)
	for i := range tensors {
		tensors[i].Name = req.Fetches[i]
	}
	return &message.RunStepResponse{Tensors: tensors, Metadata: &pb.RunMetadata{}}, err
}

// endPartial ends a partial run and makes its tasks forget it.
func (s *session) endPartial(handle string, run *partialRun) {
	s.mu.Lock()
	known := s.partials[handle] == run
	delete(s.partials, handle)
	s.mu.Unlock()
	if known {
		s.cleanup(run.plan, &pb.CleanupGraphRequest{StepId: run.id})
		s.release(run.plan)
	}
}

// endUnused ends the partial runs without a call for the time that the task allows.
func (s *session) endUnused(now time.Time) {
	q := s.master.Quota
	if q == nil || q.Limits.PartialRun <= 0 {
		return
	}
	s.mu.Lock()
	over := map[string]*partialRun{}
	for handle, run := range s.partials {
		switch {
		case run.active.Swap(false) || run.calls.Load() > 0:
			run.used = now
		case now.Sub(run.used) > q.Limits.PartialRun:
			over[handle] = run
		}
	}
	s.mu.Unlock()
	for handle, run := range over {
		q.Hit(quota.PartialRunTime)
		s.master.Log.Warn("ending a partial run without calls", "session", s.handle, "run", handle, "limit", q.Limits.PartialRun)
		s.endPartial(handle, run)
	}
}

// endPartials ends the partial runs that their client has not completed.
func (s *session) endPartials() {
	s.mu.Lock()
	partials := s.partials
	s.partials = map[string]*partialRun{}
	s.mu.Unlock()
	for _, run := range partials {
		s.cleanup(run.plan, &pb.CleanupGraphRequest{StepId: run.id})
	}
}

// take checks the feeds and fetches of one call and marks them as done. It reports whether they
// were the last.
func (r *partialRun) take(req *message.RunStepRequest, g *graph.Graph) (last bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range req.Feeds {
		if err := pending(r.feeds, req.Feeds[i].Name, "feed", "fed"); err != nil {
			return false, err
		}
	}
	for _, name := range req.Fetches {
		if err := pending(r.fetches, name, "fetch", "fetched"); err != nil {
			return false, err
		}
	}
	if err := r.checkFetches(req, g); err != nil {
		return false, err
	}
	for i := range req.Feeds {
		r.feeds[req.Feeds[i].Name] = true
	}
	for _, name := range req.Fetches {
		r.fetches[name] = true
	}
	return allDone(r.feeds) && allDone(r.fetches), nil
}

func pending(names map[string]bool, name, what, done string) error {
	used, ok := names[name]
	switch {
	case !ok:
		return status.InvalidArgumentf("The %s %s was not specified in partial_run_setup.", what, name)
	case used:
		return status.InvalidArgumentf("The %s %s has already been %s.", what, name, done)
	}
	return nil
}

func allDone(names map[string]bool) bool {
	for _, done := range names {
		if !done {
			return false
		}
	}
	return true
}

// checkFetches checks that no fetch needs a feed that is still missing.
func (r *partialRun) checkFetches(req *message.RunStepRequest, g *graph.Graph) error {
	missing := map[graph.Output]bool{}
	for name, fed := range r.feeds {
		if node, index := graph.ParseInput(name); !fed && g.Node(node) != nil {
			missing[graph.Output{Node: g.Node(node), Index: index}] = true
		}
	}
	for i := range req.Feeds {
		node, index := graph.ParseInput(req.Feeds[i].Name)
		delete(missing, graph.Output{Node: g.Node(node), Index: index})
	}
	var stack []*graph.Node
	for _, name := range req.Fetches {
		node, _ := graph.ParseInput(name)
		n := g.Node(node)
		if n == nil {
			return status.NotFoundf("Fetch %s: not found", name)
		}
		stack = append(stack, n)
	}
	return needsNone(g, stack, missing)
}

// needsNone walks back from nodes and returns an error for an output of missing that they need.
func needsNone(g *graph.Graph, stack []*graph.Node, missing map[graph.Output]bool) error {
	seen := make([]bool, g.NumIDs())
	visit := func(n *graph.Node) {
		if !seen[n.ID] {
			seen[n.ID] = true
			stack = append(stack, n)
		}
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, in := range n.Inputs() {
			if missing[in] {
				return status.InvalidArgumentf("Fetch %s:%d can't be computed from the feeds that have been fed so far.",
					in.Node.Name, in.Index)
			}
			if in.Node != nil {
				visit(in.Node)
			}
		}
		for _, src := range n.ControlInputs() {
			visit(src)
		}
	}
	return nil
}
