package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// callable is a prepared step, run by its handle, with feeds and fetches by position.
type callable struct {
	requestKey
	positions []int // index of each fetch in outputs
	options   *pb.RunOptions
}

// MakeCallable prepares a step and returns its handle.
func (m *Master) MakeCallable(ctx context.Context, req *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error) {
	if err := m.recent.Track(req.GetRequestId(), "MakeCallable (Master)", req.GetSessionHandle()); err != nil {
		return nil, err
	}
	s, err := m.use(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	c, err := s.makeCallable(ctx, req.GetOptions())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		s.releaseLocked(c.plan)
		return nil, errClosed
	}
	if err := m.Quota.Check(quota.Callables, len(s.callables)+1); err != nil {
		s.releaseLocked(c.plan)
		return nil, err
	}
	handle := s.nextCallable
	s.nextCallable++
	s.callables[handle] = c
	return &pb.MakeCallableResponse{Handle: handle}, nil
}

func (s *session) makeCallable(ctx context.Context, options *pb.CallableOptions) (*callable, error) {
	if len(options.GetFeedDevices()) > 0 || len(options.GetFetchDevices()) > 0 {
		return nil, status.Unimplementedf("CallableOptions::feed_devices and CallableOptions::fetch_devices to configure " +
			"feeding/fetching tensors to/from device memory is not yet supported when using a remote session.")
	}
	c := &callable{options: options.GetRunOptions()}
	c.feeds, c.fetches, c.targets = options.GetFeed(), options.GetFetch(), options.GetTarget()
	if err := s.master.checkNames(len(c.feeds), len(c.fetches), len(c.targets)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	state, closed := s.graph, s.closed
	s.mu.Unlock()
	if closed != nil {
		return nil, errClosed
	}
	p := newPlan("")
	s.master.background.Go(func() {
		s.makePlan(p, state, planRequest{
			signature: signature{
				feeds: c.feeds, fetches: unique(c.fetches), targets: c.targets,
				collective: c.options.GetExperimental().GetCollectiveGraphKey(),
			},
			connections: options.GetTensorConnection(), debug: c.options.GetDebugOptions(),
		})
	})
	var err error
	if c.plan, err = s.await(ctx, p); err != nil {
		return nil, err
	}
	c.bind()
	at := map[string]int{}
	for i, name := range c.outputs {
		at[name] = i
	}
	for _, name := range c.fetches {
		c.positions = append(c.positions, at[name])
	}
	return c, nil
}

// unique returns names without repetitions, in order.
func unique(names []string) []string {
	seen := make(map[string]bool, len(names))
	var out []string
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// RunCallable runs a prepared step.
func (m *Master) RunCallable(ctx context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	if err := m.recent.Track(req.RequestID, "RunCallable (Master)", req.Session); err != nil {
		return nil, err
	}
	s, err := m.use(ctx, req.Session)
	if err != nil {
		return nil, err
	}
	c, err := s.callable(req.Handle)
	if err != nil {
		return nil, err
	}
	defer s.release(c.plan)
	if len(req.Feeds) < len(c.feeds) {
		return nil, status.InvalidArgumentf("The callable %d has %d feeds, and %d were given.", req.Handle, len(c.feeds), len(req.Feeds))
	}
	d := s.deadline(ctx, c.options)
	st := s.newStep(&c.requestKey)
	for i, key := range c.feedKeys {
		st.feed(key, req.Feeds[i])
	}
	tensors, metadata, err := st.traced(ctx, d, c.options)
	if err != nil {
		return nil, s.errorFor(ctx, err)
	}
	resp := newCallableResponse(len(c.positions))
	resp.Metadata = metadata
	c.arrange(tensors, resp.Fetches)
	st.localResp.Recv = tensors // for the next step
	st.recycle()
	return resp, nil
}

// newCallableResponse returns a response with room for n tensors. For one tensor, the most frequent
// number, it needs one allocation.
func newCallableResponse(n int) *message.RunCallableResponse {
	one := &struct {
		message.RunCallableResponse
		room [1]tensor.Tensor
	}{}
	if n <= len(one.room) {
		one.Fetches = one.room[:n]
	} else {
		one.Fetches = make([]tensor.Tensor, n)
	}
	return &one.RunCallableResponse
}

// arrange copies the tensors to the positions of their fetches. Each position owns a reference.
func (c *callable) arrange(tensors []message.NamedTensor, out []tensor.Tensor) {
	for i, at := range c.positions {
		out[i] = tensors[at].Tensor.Retain()
	}
	for i := range tensors {
		tensors[i].Tensor.Release()
	}
}

// callable returns a prepared step. Its plan has one more user, who must call release.
func (s *session) callable(handle int64) (*callable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.callables[handle]
	switch {
	case s.closed != nil:
		return nil, errClosed
	case handle >= s.nextCallable:
		return nil, status.InvalidArgumentf("No such callable handle: %d", handle)
	case !ok:
		return nil, status.InvalidArgumentf("Attempted to run callable after handle was released: %d", handle)
	}
	s.useLocked(c.plan)
	return c, nil
}

// ReleaseCallable drops a prepared step, and its graphs on all tasks once no run uses it. An
// unknown handle is no error.
func (m *Master) ReleaseCallable(ctx context.Context, req *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error) {
	s, err := m.use(ctx, req.GetSessionHandle())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.callables[req.GetHandle()]
	delete(s.callables, req.GetHandle())
	s.mu.Unlock()
	if c != nil {
		s.release(c.plan)
	}
	return &pb.ReleaseCallableResponse{}, nil
}
