package weft

import (
	"slices"
	"strconv"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// stepRequest is a request to run a step, with the outputs and nodes that its names refer to. A
// step with the same feeds, fetches and targets as an earlier one reuses the request: its names
// need not be formatted again.
type stepRequest struct {
	message.RunStepRequest
	response message.RunStepResponse // filled by a master in this process
	feeds    []feedSpec              // of Feeds, in the same order
	fetches  []graph.Output          // of Fetches, in the same order
	targets  []*graph.Node           // of Targets, in the same order
}

// request returns the request for a step, with borrowed feeds. The caller must call endRequest.
func (s *Session) request(
	feeds map[graph.Output]tensor.Tensor, fetches []graph.Output, targets []*graph.Node,
) (*stepRequest, error) {
	req, _ := s.requests.Get().(*stepRequest)
	if req == nil {
		req = &stepRequest{}
	}
	err := req.setFeeds(s.graph, feeds)
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

// setFeeds sets the feeds after checking each against the output that it replaces.
func (r *stepRequest) setFeeds(g *graph.Graph, feeds map[graph.Output]tensor.Tensor) error {
	same := len(r.feeds) == len(feeds)
	for i := 0; same && i < len(r.feeds); i++ {
		_, same = feeds[r.feeds[i].output]
	}
	if !same {
		r.feeds, r.Feeds = r.feeds[:0], r.Feeds[:0]
		for at := range feeds {
			spec, err := newFeedSpec(g, at)
			if err != nil {
				return err
			}
			r.feeds = append(r.feeds, spec)
			r.Feeds = append(r.Feeds, message.NamedTensor{Name: outputName(at)})
		}
	}
	for i := range r.feeds {
		t := feeds[r.feeds[i].output]
		if err := r.feeds[i].check(&t); err != nil {
			return err
		}
		r.Feeds[i].Tensor = t
	}
	return nil
}

// endRequest releases the feeds of a request, which have been lent. With again it keeps the request
// for another step: the step has succeeded.
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

// outputName returns the name of an output in a request, "node:0".
func outputName(o graph.Output) string {
	return o.Node.Name + ":" + strconv.Itoa(o.Index)
}

// errNoNode is the error for the zero Output, which builders return for a node that they could not
// add.
var errNoNode = status.InvalidArgumentf("a feed, fetch or target is not part of a graph: was there a build error?")

func names(outputs []graph.Output) ([]string, error) {
	out := make([]string, len(outputs))
	for i, o := range outputs {
		if o.Node == nil {
			return nil, errNoNode
		}
		out[i] = outputName(o)
	}
	return out, nil
}

func nodeNames(nodes []*graph.Node) ([]string, error) {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		if n == nil {
			return nil, errNoNode
		}
		out[i] = n.Name
	}
	return out, nil
}

// signature returns the names of the feeds, fetches and targets of a step.
func signature(step Step) (feed, fetch, target []string, err error) {
	if feed, err = names(step.Feeds); err != nil {
		return nil, nil, nil, err
	}
	if fetch, err = names(step.Fetches); err != nil {
		return nil, nil, nil, err
	}
	target, err = nodeNames(step.Targets)
	return feed, fetch, target, err
}
