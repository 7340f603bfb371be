package weft

import (
	"context"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// Feeds maps outputs of the graph to the values that replace them during one step.
type Feeds = map[graph.Output]tensor.Tensor

// Step describes which part of a graph runs. Everything that the fetches and targets need is run,
// with the feeds instead of the values that the graph would compute for these outputs.
type Step struct {
	Feeds   []graph.Output // outputs that each run replaces by a value
	Fetches []graph.Output // outputs whose values each run returns
	Targets []*graph.Node  // nodes that run for their effect
	// AnyShape lets feeds have other shapes than their placeholders declare, as in TensorFlow's C++
	// sessions. The operations that take the values check them.
	AnyShape bool
}

// Run runs one step and returns the values of the fetches, in their order. It has the arguments of
// TensorFlow's Session.run; [Session.Fetch] and [Session.Exec] are shorter for the common cases.
//
// Feeds are borrowed until the call returns. The caller owns the returned values but must not
// modify their elements, which other holders may share (package tensor). Releasing them lets their
// memory be reused.
//
// A feed of another type or shape than that of its placeholder is an InvalidArgument error, which
// names the placeholder and the caller's line. Steps may run concurrently.
func (s *Session) Run(
	ctx context.Context, feeds Feeds, fetches []graph.Output, targets []*graph.Node, opts ...RunOption,
) ([]tensor.Tensor, error) {
	req, err := s.request(feeds, fetches, targets)
	if err != nil {
		return nil, err
	}
	out, _, err := s.run(ctx, req, newRunSettings(opts, s.settings.timeout()))
	return out, err
}

// Fetch runs one step and returns the values of the given outputs, in their order. It is
// [Session.Run] without targets.
func (s *Session) Fetch(ctx context.Context, feeds Feeds, outs ...graph.Output) ([]tensor.Tensor, error) {
	return s.Run(ctx, feeds, outs, nil)
}

// Exec runs one step for its effect: the given nodes and everything that they need. It is
// [Session.Run] without fetches.
func (s *Session) Exec(ctx context.Context, feeds Feeds, targets ...*graph.Node) error {
	_, err := s.Run(ctx, feeds, nil, targets)
	return err
}
