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

// FinalOpsHook runs one more step at the end of training, without hooks, and keeps its values.
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

// Values returns the values of the fetches in their order, or nil before the end of training.
func (h *FinalOpsHook) Values() []tensor.Tensor { return h.values }

// FeedFnHook feeds each step with the values that a function returns.
type FeedFnHook struct {
	BaseHook
	// Feed is called before each step. If it returns [io.EOF] the step is not run and training ends
	// without an error.
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
