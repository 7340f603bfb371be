package train

import (
	"context"
	"errors"
	"io"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// FinalOpsHook fetches values after the last step.
type FinalOpsHook struct {
	BaseHook
	Fetches []op.Output
	Targets []*graph.Node
	Feeds   map[graph.Output]tensor.Tensor

	values []tensor.Tensor
}

// End implements [SessionRunHook].
func (h *FinalOpsHook) End(ctx context.Context, sess Session) (err error) {
	h.values, err = sess.Run(ctx, h.Feeds, h.Fetches, h.Targets)
	return err
}

// Values returns the values of the fetches after the last step, in their order; nil before.
func (h *FinalOpsHook) Values() []tensor.Tensor { return h.values }

// FeedFnHook feeds each step what a function returns. [io.EOF] ends training: the step is not run.
type FeedFnHook struct {
	BaseHook
	Feed func(ctx context.Context) (map[graph.Output]tensor.Tensor, error)
}

// BeforeRun implements [SessionRunHook].
func (h *FeedFnHook) BeforeRun(ctx context.Context, _ *RunContext) (RunArgs, error) {
	feeds, err := h.Feed(ctx)
	if errors.Is(err, io.EOF) {
		err = status.OutOfRangef("the input of FeedFnHook has ended: %w", err)
	}
	return RunArgs{Feeds: feeds}, err
}
