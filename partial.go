package weft

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/tensor"
)

// PartialRun is a step that runs in several calls. Each call feeds some values and fetches others.
// The step ends when all declared feeds and fetches have been used, or with the first error.
type PartialRun struct {
	session *Session
	handle  string
}

// StartPartial starts a step that runs in several calls. Each of its feeds and fetches may be used
// once.
func (s *Session) StartPartial(ctx context.Context, step Step) (*PartialRun, error) {
	feed, fetch, target, err := signature(step)
	if err != nil {
		return nil, err
	}
	r, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	resp, err := r.master.PartialRunSetup(ctx, &pb.PartialRunSetupRequest{
		SessionHandle: r.handle, Feed: feed, Fetch: fetch, Target: target, RequestId: requestID(),
	})
	if err != nil {
		return nil, err
	}
	return &PartialRun{session: s, handle: resp.GetPartialRunHandle()}, nil
}

// Run feeds some of the declared values and returns the values of some of the declared fetches,
// which must depend only on what has been fed so far. Ownership is as for [Session.Run].
func (p *PartialRun) Run(ctx context.Context, feeds Feeds, fetches ...graph.Output) ([]tensor.Tensor, error) {
	req, err := p.session.request(feeds, fetches, nil)
	if err != nil {
		return nil, err
	}
	req.PartialRun = p.handle
	out, _, err := p.session.run(ctx, req, runSettings{timeout: p.session.settings.timeout()})
	return out, err
}
