package master

import (
	"context"
	"math"
	"time"

	"github.com/weft-ml/weft/internal/message"
	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/status"
)

// RunStep runs one step of a session, or one call of a step that is run in pieces. The error is in the response where the
// request says so.
func (m *Master) RunStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	resp, err := m.runStep(ctx, req)
	if err != nil && req.StoreErrorsInBody {
		return &message.RunStepResponse{Metadata: &pb.RunMetadata{}, Err: status.From(err)}, nil
	}
	return resp, err
}

func (m *Master) runStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	if err := m.recent.Track(req.RequestID, "RunStep (Master)", req.Session); err != nil {
		return nil, err
	}
	s, err := m.use(req.Session)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.withTimeout(ctx, req.Options)
	defer cancel()
	if req.PartialRun != "" {
		return s.runPartial(ctx, req)
	}
	return s.runStep(ctx, req)
}

// withTimeout gives a step the time that the client allows it, or else the session.
func (s *session) withTimeout(ctx context.Context, options *pb.RunOptions) (context.Context, context.CancelFunc) {
	if ms := options.GetTimeoutInMs(); ms > 0 {
		return withTimeout(ctx, ms)
	}
	return withTimeout(ctx, s.config.GetOperationTimeoutInMs())
}

// withTimeout returns a context that ends after a number of milliseconds; 0 is no limit. One that ends before anyway, as that
// of a client with the same limit does, needs no timer more.
func withTimeout(ctx context.Context, ms int64) (context.Context, context.CancelFunc) {
	if ms <= 0 {
		return ctx, func() {}
	}
	limit := time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= limit {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

func (s *session) runStep(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	o, err := s.order(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.release(o.plan)
	st := s.newStep(o)
	for i, key := range o.feedKeys {
		st.feed(key, req.Feeds[i].Tensor)
	}
	tensors, metadata, err := st.traced(ctx, req.Options)
	if err != nil {
		return nil, err
	}
	st.forget()
	for i := range tensors {
		tensors[i].Name = o.outputs[i]
	}
	return &message.RunStepResponse{Tensors: tensors, Metadata: metadata}, nil
}

// traced numbers the step, runs it with what its options ask to be recorded, and lets the tasks forget it.
func (st *step) traced(ctx context.Context, options *pb.RunOptions) ([]message.NamedTensor, *pb.RunMetadata, error) {
	t, err := newTrace(st.session, st.plan, options)
	if err != nil {
		return nil, nil, err
	}
	st.exec = t.executorOptions()
	if err := st.number(ctx); err != nil {
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
