package weft

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Callable is a prepared step: the fastest way to run the same step many times. It may be used
// concurrently.
type Callable struct {
	session *Session
	remote  *remoteSession
	handle  int64
	feeds   []feedSpec
	fetches int
}

// Prepare prepares a step for many runs. The step sees the graph at the time of the call. The
// caller closes the callable when it is no longer used, or closes the session.
func (s *Session) Prepare(ctx context.Context, step Step, opts ...RunOption) (*Callable, error) {
	feed, fetch, target, err := signature(step)
	if err != nil {
		return nil, err
	}
	specs, err := newFeedSpecs(s.graph, step.Feeds)
	if err != nil {
		return nil, err
	}
	if step.AnyShape {
		for i := range specs {
			specs[i].shape = tensor.PartialShape{}
		}
	}
	r, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	set := newRunSettings(opts, s.settings.timeout())
	ctx, cancel := s.during(ctx, set.timeout)
	defer cancel()
	resp, err := r.master.MakeCallable(ctx, &pb.MakeCallableRequest{
		SessionHandle: r.handle, RequestId: requestID(),
		Options: &pb.CallableOptions{Feed: feed, Fetch: fetch, Target: target, RunOptions: set.options},
	})
	if err != nil {
		return nil, err
	}
	return &Callable{session: s, remote: r, handle: resp.GetHandle(), feeds: specs, fetches: len(step.Fetches)}, nil
}

// callableRequests holds requests that no call uses. A master only borrows its request.
var callableRequests = sync.Pool{New: func() any { return new(message.RunCallableRequest) }}

// recycle releases a request and returns it to the pool.
func recycle(req *message.RunCallableRequest) {
	req.Release()
	clear(req.Feeds)
	*req = message.RunCallableRequest{Feeds: req.Feeds[:0]}
	callableRequests.Put(req)
}

// Run runs the step. The feeds are in the order of [Step].Feeds, the returned values in that of
// Step.Fetches. Ownership and errors are as for [Session.Run].
func (c *Callable) Run(ctx context.Context, feeds ...tensor.Tensor) ([]tensor.Tensor, error) {
	if len(feeds) != len(c.feeds) {
		return nil, status.InvalidArgumentf("the callable takes %d feeds, got %d", len(c.feeds), len(feeds))
	}
	// a master in this process enforces the limit itself
	if d := c.session.settings.timeout(); d > 0 && !c.remote.inProcess {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	req := callableRequests.Get().(*message.RunCallableRequest)
	req.Session, req.Handle = c.remote.handle, c.handle
	if !c.remote.inProcess { // the transport may deliver the request twice
		req.RequestID = requestID()
	}
	defer recycle(req)
	for i := range feeds {
		if err := c.feeds[i].check(&feeds[i]); err != nil {
			return nil, err
		}
		lent, err := c.remote.lend(feeds[i])
		if err != nil {
			return nil, err
		}
		req.Feeds = append(req.Feeds, lent)
	}
	resp, err := c.remote.master.RunCallable(ctx, req)
	switch {
	case err != nil:
		return nil, c.session.explain(ctx, err)
	case len(resp.Fetches) != c.fetches:
		return nil, status.Internalf("the response has %d values for %d fetches", len(resp.Fetches), c.fetches)
	}
	return resp.Fetches, nil
}

// Close releases the callable on the master, within 10 seconds. Closing the session closes its
// callables too.
func (c *Callable) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, err := c.remote.master.ReleaseCallable(ctx, &pb.ReleaseCallableRequest{SessionHandle: c.remote.handle, Handle: c.handle})
	return err
}
