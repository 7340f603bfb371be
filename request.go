package weft

import (
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// stepRequest is a request to run a step, with what its names stand for. Most steps are like one
// before, whose request is used again: names are made once, and feeds come in the same order.
type stepRequest struct {
	message.RunStepRequest
	response message.RunStepResponse // where a master in process puts it
	feeds    []graph.Output          // of Feeds
	fetches  []graph.Output          // of Fetches
	targets  []*graph.Node           // of Targets
}

// request returns the request for a step, with feeds that are borrowed. The caller must call
// endRequest.
func (s *Session) request(
	feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node,
) (*stepRequest, error) {
	req, _ := s.requests.Get().(*stepRequest)
	if req == nil {
		req = &stepRequest{}
	}
	err := req.setFeeds(feeds)
	if err == nil && !slices.Equal(req.fetches, fetches) {
		req.fetches = append(req.fetches[:0], fetches...)
		req.Fetches, err = names(fetches)
	}
	if err == nil && !slices.Equal(req.targets, targets) {
		req.targets = append(req.targets[:0], targets...)
		req.Targets, err = nodeNames(targets)
	}
	return req, err
}

func (r *stepRequest) setFeeds(feeds map[graph.Output]tensor.Tensor) error {
	same := len(r.feeds) == len(feeds)
	for i := 0; same && i < len(r.feeds); i++ {
		_, same = feeds[r.feeds[i]]
	}
	if !same {
		r.feeds, r.Feeds = r.feeds[:0], r.Feeds[:0]
		for at := range feeds {
			if at.Node == nil {
				return errNoNode
			}
			r.feeds = append(r.feeds, at)
			r.Feeds = append(r.Feeds, message.NamedTensor{Name: outputName(at)})
		}
	}
	for i, at := range r.feeds {
		t := feeds[at]
		if !t.Initialized() {
			return status.InvalidArgumentf("the feed of %v has no value", at)
		}
		r.Feeds[i].Tensor = t
	}
	return nil
}

// endRequest ends the use of a request whose feeds have been lent. That of a step which has
// succeeded is used again.
func (s *Session) endRequest(req *stepRequest, again bool) {
	req.Release()
	if !again {
		return
	}
	for i := range req.Feeds {
		req.Feeds[i].Tensor = tensor.Tensor{}
	}
	clear(req.response.Tensors)
	req.response = message.RunStepResponse{Tensors: req.response.Tensors[:0]}
	req.RunStepRequest = message.RunStepRequest{Feeds: req.Feeds, Fetches: req.Fetches, Targets: req.Targets}
	s.requests.Put(req)
}
