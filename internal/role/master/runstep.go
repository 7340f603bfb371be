package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// RunStep runs one step of a session, or one call of a step that is run in pieces. The error is in
// the response where the request says so.
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
	l := s.limit(ctx, req.Options)
	if req.PartialRun != "" {
		return s.runPartial(ctx, l, req)
	}
	return s.runStep(ctx, l, req)
}

func (s *session) runStep(ctx context.Context, l limit, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	o, err := s.order(ctx, l, req)
	if err != nil {
		return nil, err
	}
	defer s.release(o.plan)
	st := s.newStep(o)
	for i, key := range o.feedKeys {
		st.feed(key, req.Feeds[i].Tensor)
	}
	tensors, metadata, err := st.traced(ctx, l, req.Options)
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
		resp.Tensors[i].Name = o.outputs[i]
	}
	st.answer.Recv = tensors // for the next step
	st.forget()
	return resp, nil
}

// traced numbers the step, runs it with what its options ask to be recorded, and lets the tasks
// forget it.
func (st *step) traced(ctx context.Context, l limit, options *pb.RunOptions) ([]message.NamedTensor, *pb.RunMetadata, error) {
	t, err := newTrace(st.session, st.plan, options)
	if err != nil {
		return nil, nil, err
	}
	st.exec = t.executorOptions()
	st.begin(ctx, l)
	defer st.life.Finish()
	if err := st.number(&st.life); err != nil {
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
