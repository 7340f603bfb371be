package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/failpoint"
	"github.com/weft-ml/weft/status"
)

// RunStep runs one step of a session, or one call of a partial run. The error is in the response if
// the request asks for that.
func (m *Master) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	resp, err := m.runStep(ctx, req)
	if err != nil && req.StoreErrorsInBody {
		return &message.RunStepResponse{Metadata: &pb.RunMetadata{}, Err: status.From(err)}, nil
	}
	return resp, err
}

func (m *Master) runStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	if err := failpoint.Hit("master/run-step"); err != nil {
		return nil, err
	}
	if err := m.recent.Track(req.RequestID, "RunStep (Master)", req.Session); err != nil {
		return nil, err
	}
	s, err := m.use(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	if err := m.checkNames(len(req.Feeds), len(req.Fetches), len(req.Targets)); err != nil {
		return nil, err
	}
	d := s.deadline(ctx, req.Options)
	run := s.runStep
	if req.PartialRun != "" {
		run = s.runPartial
	}
	resp, err := run(ctx, d, req)
	if err != nil {
		return nil, s.errorFor(ctx, err)
	}
	return resp, nil
}

// checkNames returns an error if a step has more feeds, fetches and targets than a graph may have
// nodes.
func (m *Master) checkNames(feeds, fetches, targets int) error {
	if n := feeds + fetches + targets; n > m.maxNames {
		return status.ResourceExhaustedf("The step has %d feeds, fetches and targets; it may have as many as a graph may have nodes, %d (%s).",
			n, m.maxNames, quota.Nodes.Flag())
	}
	return nil
}

// errorFor returns the error of a step in the form that the client understands.
func (s *session) errorFor(ctx context.Context, err error) error {
	return peer.FromContext(ctx).ErrorFor(err, func(node string) string {
		s.mu.Lock()
		g := s.graph.graph
		s.mu.Unlock()
		if n := g.Node(node); n != nil {
			return n.Summary()
		}
		return ""
	})
}

func (s *session) runStep(ctx context.Context, d deadline, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	k, err := s.requestKey(ctx, d, req)
	if err != nil {
		return nil, err
	}
	defer s.release(k.plan)
	st := s.newStep(k)
	for i, key := range k.feedKeys {
		st.feed(key, req.Feeds[i].Tensor)
	}
	tensors, metadata, err := st.traced(ctx, d, req.Options)
	if err != nil {
		return nil, err
	}
	resp := req.Into
	if resp == nil {
		resp = &message.RunStepResponse{}
	}
	resp.Metadata = metadata
	resp.Tensors = append(resp.Tensors[:0], tensors...)
	for i := range resp.Tensors {
		resp.Tensors[i].Name = k.outputs[i]
	}
	st.localResp.Recv = tensors // memory for the next step
	st.recycle()
	return resp, nil
}

// traced runs the step in a span.
func (st *step) traced(ctx context.Context, d deadline, options *pb.RunOptions) ([]message.NamedTensor, *pb.RunMetadata, error) {
	tracer := st.session.master.Tracer
	if tracer == nil {
		return st.recorded(ctx, d, options)
	}
	ctx, end := tracer.StepBegan(ctx, st.session.shownHandle(), len(st.plan.partitions))
	tensors, metadata, err := st.recorded(ctx, d, options)
	end(st.id, err)
	return tensors, metadata, err
}

// recorded numbers the step, runs it, records what its options ask for, and makes the tasks forget
// it.
func (st *step) recorded(ctx context.Context, d deadline, options *pb.RunOptions) ([]message.NamedTensor, *pb.RunMetadata, error) {
	t, err := newTrace(st.session, st.plan, options)
	if err != nil {
		return nil, nil, err
	}
	st.exec = t.executorOptions()
	st.begin(ctx, d)
	defer st.ctx.Finish()
	if err := st.number(&st.ctx); err != nil {
		return nil, nil, err
	}
	t.begin(ctx)
	resps, err := st.run(ctx)
	defer st.retire(err)
	metadata := t.end(ctx, st.id, resps)
	if err != nil {
		return nil, nil, err
	}
	tensors, err := st.fetched(resps)
	return tensors, metadata, err
}
