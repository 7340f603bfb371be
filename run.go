package weft

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Run runs what the fetches and targets need, with the feeds in the place of what the graph would
// compute for these outputs, and returns the values of the fetches, in their order. Feeds are
// borrowed until the call returns. The values are the caller's, who may not change them (package
// tensor): releasing them lets their memory be used again.
func (s *Session) Run(
	ctx context.Context, feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node, opts ...RunOption,
) ([]tensor.Tensor, error) {
	req, err := s.request(feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, req, opts)
}

func (s *Session) run(ctx context.Context, req *stepRequest, opts []RunOption) ([]tensor.Tensor, error) {
	k, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	set := newRunSettings(opts, s.settings.timeout())
	if set.timeout > 0 && !k.inProcess { // whose master keeps to the limit itself
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.timeout)
		defer cancel()
	}
	req.Session, req.Options, req.StoreErrorsInBody = k.handle, set.options, true
	if k.inProcess {
		req.Into = &req.response
	} else { // where a network can bring it twice
		req.RequestID = requestID()
	}
	done := false
	defer func() { s.endRequest(req, done) }()
	for i := range req.Feeds {
		if req.Feeds[i].Tensor, err = k.lend(req.Feeds[i].Tensor); err != nil {
			req.Feeds = req.Feeds[:i] // the rest is the caller's still
			return nil, err
		}
	}
	resp, err := k.master.RunStep(ctx, &req.RunStepRequest)
	if err != nil {
		return nil, s.explain(err)
	}
	if resp.Err != nil {
		return nil, s.explain(resp.Err)
	}
	if set.metadata != nil {
		set.metadata.pb = resp.Metadata
	}
	out, err := inOrder(req.Fetches, resp.Tensors)
	done = err == nil
	return out, err
}

// lend returns a feed for the time of a call. In this process, what runs may keep a feed for
// longer, in a variable or a fetch: memory that the caller may write to afterwards is copied.
func (k *known) lend(t tensor.Tensor) (tensor.Tensor, error) {
	if k.inProcess && !t.Exclusive() {
		return t.Clone()
	}
	return t.Retain(), nil
}

// explain returns the error of a call that failed because the session was closed during it as that.
func (s *Session) explain(err error) error {
	if s.ctx.Err() != nil && status.CodeOf(err) == status.Aborted {
		return errClosed
	}
	return err
}

// requestID returns a number by which a master knows a request that it gets twice; it is never 0.
func requestID() int64 {
	for {
		if id := int64(rand.Uint64()); id != 0 {
			return id
		}
	}
}

// inOrder returns the tensors under the given names. A name that was asked for twice may have come
// once.
func inOrder(names []string, got []message.NamedTensor) ([]tensor.Tensor, error) {
	out := make([]tensor.Tensor, len(names))
	var at map[string]int // of names in got, where these are not in order
	for i, name := range names {
		if at == nil && i < len(got) && got[i].Name == name {
			out[i] = got[i].Tensor
			continue
		}
		if at == nil {
			at = make(map[string]int, len(got))
			for j := range got {
				at[got[j].Name] = j
			}
		}
		j, ok := at[name]
		if !ok {
			return nil, status.Internalf("the response has no value for %s", name)
		}
		if out[i] = got[j].Tensor; slices.Contains(names[:i], name) {
			out[i] = got[j].Tensor.Retain()
		}
	}
	return out, nil
}
