package weft

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Callable is a step that was prepared: the fastest way to run the same step many times. It may be
// used concurrently.
type Callable struct {
	session *Session
	known   *known
	handle  int64
	feeds   []feedSpec
	fetches int
}

// MakeCallable prepares a step with the given feeds, fetches and targets. It sees the graph as it
// is now.
func (s *Session) MakeCallable(
	ctx context.Context, feeds, fetches []graph.Output, targets []*graph.Node, opts ...RunOption,
) (*Callable, error) {
	feed, fetch, target, err := signature(feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	specs, err := newFeedSpecs(s.graph, feeds)
	if err != nil {
		return nil, err
	}
	k, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	set := newRunSettings(opts, s.settings.timeout())
	ctx, cancel := s.during(ctx, set.timeout)
	defer cancel()
	resp, err := k.master.MakeCallable(ctx, &pb.MakeCallableRequest{
		SessionHandle: k.handle, RequestId: requestID(),
		Options: &pb.CallableOptions{Feed: feed, Fetch: fetch, Target: target, RunOptions: set.options},
	})
	if err != nil {
		return nil, err
	}
	return &Callable{session: s, known: k, handle: resp.GetHandle(), feeds: specs, fetches: len(fetches)}, nil
}

// callableRequests are those that no call uses: a master borrows its request.
var callableRequests = sync.Pool{New: func() any { return new(message.RunCallableRequest) }}

// recycle ends the use of a request.
func recycle(req *message.RunCallableRequest) {
	req.Release()
	clear(req.Feeds)
	*req = message.RunCallableRequest{Feeds: req.Feeds[:0]}
	callableRequests.Put(req)
}

// Run runs the step. Feeds are in the order in which they were declared, and so are the values that
// it returns; who owns them is as with [Session.Run].
func (c *Callable) Run(ctx context.Context, feeds ...tensor.Tensor) ([]tensor.Tensor, error) {
	if len(feeds) != len(c.feeds) {
		return nil, status.InvalidArgumentf("the callable takes %d feeds, got %d", len(c.feeds), len(feeds))
	}
	// whose master keeps to the limit itself
	if d := c.session.settings.timeout(); d > 0 && !c.known.inProcess {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	req := callableRequests.Get().(*message.RunCallableRequest)
	req.Session, req.Handle = c.known.handle, c.handle
	if !c.known.inProcess { // the transport may deliver the request twice
		req.RequestID = requestID()
	}
	defer recycle(req)
	for i := range feeds {
		if err := c.feeds[i].check(&feeds[i]); err != nil {
			return nil, err
		}
		lent, err := c.known.lend(feeds[i])
		if err != nil {
			return nil, err
		}
		req.Feeds = append(req.Feeds, lent)
	}
	resp, err := c.known.master.RunCallable(ctx, req)
	switch {
	case err != nil:
		return nil, c.session.explain(err)
	case len(resp.Fetches) != c.fetches:
		return nil, status.Internalf("the response has %d values for %d fetches", len(resp.Fetches), c.fetches)
	}
	return resp.Fetches, nil
}

// Release lets the master forget the callable.
func (c *Callable) Release(ctx context.Context) error {
	_, err := c.known.master.ReleaseCallable(ctx, &pb.ReleaseCallableRequest{SessionHandle: c.known.handle, Handle: c.handle})
	return err
}
