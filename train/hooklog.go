package train

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// LoggingTensorHook logs the values of tensors at intervals, which are measured in steps of this
// session or in time. One of EverySteps, Every and AtEnd must be set.
type LoggingTensorHook struct {
	BaseHook
	Tensors    map[string]op.Output // by their names in the log
	EverySteps int64                // steps between lines; 0 for none
	Every      time.Duration        // time between lines; 0 for none
	AtEnd      bool                 // also log after the last step
	Logger     *slog.Logger         // must not be nil
	Now        func() time.Time     // the clock; time.Now if nil

	names []string
	fetch []op.Output
	due   trigger
	steps int64
	asked bool
}

// Begin implements [SessionRunHook].
func (h *LoggingTensorHook) Begin(*op.Scope) error {
	if h.EverySteps == 0 && h.Every == 0 && !h.AtEnd || h.Logger == nil {
		return status.InvalidArgumentf("LoggingTensorHook: Logger and one of EverySteps, Every and AtEnd must be given")
	}
	h.due = newTrigger(h.EverySteps, h.Every, h.Now)
	h.names = slices.Sorted(maps.Keys(h.Tensors))
	for _, name := range h.names {
		h.fetch = append(h.fetch, h.Tensors[name])
	}
	return nil
}

// BeforeRun implements [SessionRunHook].
func (h *LoggingTensorHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	if h.asked = (h.EverySteps > 0 || h.Every > 0) && h.due.due(h.steps); !h.asked {
		return RunArgs{}, nil
	}
	return RunArgs{Fetches: h.fetch}, nil
}

// AfterRun implements [SessionRunHook].
func (h *LoggingTensorHook) AfterRun(ctx context.Context, _ *RunContext, values RunValues) error {
	if h.asked {
		h.due.fire(h.steps)
		h.log(ctx, values.Fetched)
	}
	h.steps++
	return nil
}

// End implements [SessionRunHook].
func (h *LoggingTensorHook) End(ctx context.Context, sess Session) error {
	if !h.AtEnd {
		return nil
	}
	values, err := sess.Run(ctx, nil, h.fetch, nil)
	if err == nil {
		h.log(ctx, values)
	}
	return err
}

func (h *LoggingTensorHook) log(ctx context.Context, values []tensor.Tensor) {
	attrs := make([]slog.Attr, len(values))
	for i, name := range h.names {
		attrs[i] = slog.Any(name, values[i].Go())
	}
	h.Logger.LogAttrs(ctx, slog.LevelInfo, "tensors", attrs...)
}
