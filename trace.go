package weft

import (
	"context"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Traced is the result of a step that was traced.
type Traced struct {
	Values   []tensor.Tensor // of the fetches, in their order; owned by the caller
	Metadata *Metadata       // what was recorded
}

// TraceOption changes what [Session.RunTraced] does. Every [RunOption] is one.
type TraceOption interface {
	applyTrace(*runSettings)
}

// traceOption is an option of traced steps only.
type traceOption func(*runSettings)

func (o traceOption) applyTrace(r *runSettings) { o(r) }

// WithPartitionGraphs also records the graphs that ran on each device: see
// [Metadata.PartitionGraphs].
func WithPartitionGraphs() TraceOption {
	return traceOption(func(r *runSettings) { r.proto().OutputPartitionGraphs = true })
}

// RunTraced runs one step and records when and where each node ran and each tensor was transferred.
// The values are those of step.Feeds, in their order. Tracing makes a step slower; results are the
// same as those of [Session.Run].
func (s *Session) RunTraced(ctx context.Context, step Step, values []tensor.Tensor, opts ...TraceOption) (*Traced, error) {
	if len(values) != len(step.Feeds) {
		return nil, status.InvalidArgumentf("the step has %d feeds, got %d values", len(step.Feeds), len(values))
	}
	feeds := make(Feeds, len(values))
	for i, o := range step.Feeds {
		if _, twice := feeds[o]; twice {
			return nil, status.InvalidArgumentf("%s is fed twice", o)
		}
		feeds[o] = values[i]
	}
	req, err := s.request(feeds, step.Fetches, step.Targets)
	if err != nil {
		return nil, err
	}
	set := runSettings{timeout: s.settings.timeout(), traced: true}
	set.proto().TraceLevel = pb.RunOptions_FULL_TRACE
	for _, o := range opts {
		o.applyTrace(&set)
	}
	out, recorded, err := s.run(ctx, req, set)
	if err != nil {
		return nil, err
	}
	return &Traced{Values: out, Metadata: recorded}, nil
}
