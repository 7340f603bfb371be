package weft

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/tensor"
)

// PartialRun is a step that is run in pieces: values are fed and fetched by several calls. It ends
// when all feeds that were declared have been fed and all fetches fetched, or with an error.
type PartialRun struct {
	session *Session
	handle  string
}

// PartialRun begins a step to be run in pieces, in which the given outputs may be fed and fetched,
// each once.
func (s *Session) PartialRun(ctx context.Context, feeds, fetches []graph.Output, targets []*graph.Node) (*PartialRun, error) {
	feed, fetch, target, err := signature(feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	k, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.during(ctx, s.settings.timeout())
	defer cancel()
	resp, err := k.master.PartialRunSetup(ctx, &pb.PartialRunSetupRequest{
		SessionHandle: k.handle, Feed: feed, Fetch: fetch, Target: target, RequestId: requestID(),
	})
	if err != nil {
		return nil, err
	}
	return &PartialRun{session: s, handle: resp.GetPartialRunHandle()}, nil
}

// Run feeds some values and fetches others, which must follow from what has been fed so far.
func (p *PartialRun) Run(ctx context.Context, feeds map[graph.Output]tensor.Tensor, fetches []graph.Output) ([]tensor.Tensor, error) {
	req, err := p.session.request(feeds, fetches, nil)
	if err != nil {
		return nil, err
	}
	req.PartialRun = p.handle
	return p.session.run(ctx, req, nil)
}
