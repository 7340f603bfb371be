package master

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// callable is a step that was prepared to be run by its number, with feeds and fetches by position.
type callable struct {
	order
	positions []int // of each fetch among the order's outputs
	options   *pb.RunOptions
}

// MakeCallable prepares a step.
func (m *Master) MakeCallable(ctx context.Context, req *pb.MakeCallableRequest) (*pb.MakeCallableResponse, error) {
	if err := m.recent.Track(req.GetRequestId(), "MakeCallable (Master)", req.GetSessionHandle()); err != nil {
		return nil, err
	}
	s, err := m.use(req.GetSessionHandle())
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
	handle := s.made
	s.made++
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

// unique returns names without repetitions, in their order.
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

// RunCallable runs a step that was prepared.
func (m *Master) RunCallable(ctx context.Context, req *message.RunCallableRequest) (*message.RunCallableResponse, error) {
	if err := m.recent.Track(req.RequestID, "RunCallable (Master)", req.Session); err != nil {
		return nil, err
	}
	s, err := m.use(req.Session)
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
	l := s.limit(ctx, c.options)
	st := s.newStep(&c.order)
	for i, key := range c.feedKeys {
		st.feed(key, req.Feeds[i])
	}
	tensors, metadata, err := st.traced(ctx, l, c.options)
	if err != nil {
		return nil, err
	}
	resp := newCallableResponse(len(c.positions))
	resp.Metadata = metadata
	c.arrange(tensors, resp.Fetches)
	st.answer.Recv = tensors // for the next step
	st.forget()
	return resp, nil
}

// newCallableResponse returns a response with room for n tensors. Most have one, which then lies
// beside it.
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

// arrange puts the tensors of all fetches in their positions. A fetch that is repeated has
// references of its own.
func (c *callable) arrange(tensors []message.NamedTensor, out []tensor.Tensor) {
	for i, at := range c.positions {
		out[i] = tensors[at].Tensor.Retain()
	}
	for i := range tensors {
		tensors[i].Tensor.Release()
	}
}

// callable returns a step that was prepared, whose plan has one more user, who must call release.
func (s *session) callable(handle int64) (*callable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.callables[handle]
	switch {
	case s.closed != nil:
		return nil, errClosed
	case handle >= s.made:
		return nil, status.InvalidArgumentf("No such callable handle: %d", handle)
	case !ok:
		return nil, status.InvalidArgumentf("Attempted to run callable after handle was released: %d", handle)
	}
	s.useLocked(c.plan)
	return c, nil
}

// ReleaseCallable drops a step that was prepared, with its graphs on all tasks once it no longer
// runs. One that is not there is no error.
func (m *Master) ReleaseCallable(_ context.Context, req *pb.ReleaseCallableRequest) (*pb.ReleaseCallableResponse, error) {
	s, err := m.use(req.GetSessionHandle())
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
