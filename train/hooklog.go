package train

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// LoggingTensorHook logs the values of tensors every so many steps of this session or so much time,
// or at the end.
type LoggingTensorHook struct {
	NoHook
	Tensors    map[string]op.Output // by what they are called in the log
	EverySteps int64
	Every      time.Duration
	AtEnd      bool // also when training ends
	Logger     *slog.Logger
	Now        func() time.Time // the clock; time.Now if nil

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

// ProgressHook draws a line with a bar that fills up as the global step nears its last, and the
// time that is left.
type ProgressHook struct {
	NoHook
	Out   io.Writer // a terminal
	Last  int64     // value of the global step at the end
	Every time.Duration
	Now   func() time.Time // the clock; time.Now if nil

	step  *Variable
	due   trigger
	first int64 // the step at the start
	begin time.Time
}

const (
	progressEvery = 100 * time.Millisecond
	progressWidth = 40
)

// Begin implements [SessionRunHook].
func (h *ProgressHook) Begin(s *op.Scope) (err error) {
	if h.Every == 0 {
		h.Every = progressEvery
	}
	h.due = newTrigger(0, h.Every, h.Now)
	h.step, err = globalStepOf(s, "ProgressHook")
	return err
}

// AfterCreateSession implements [SessionRunHook].
func (h *ProgressHook) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) (err error) {
	h.begin = h.due.now()
	h.first, err = readStep(ctx, sess, h.step)
	return err
}

// BeforeRun implements [SessionRunHook].
func (h *ProgressHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.step.Value}}, nil
}

// AfterRun implements [SessionRunHook].
func (h *ProgressHook) AfterRun(_ context.Context, _ *RunContext, values RunValues) error {
	if at := stepValue(&values.Fetched[0]) + 1; h.due.due(at) {
		h.due.fire(at)
		return h.draw(at)
	}
	return nil
}

// End implements [SessionRunHook].
func (h *ProgressHook) End(ctx context.Context, sess Session) error {
	at, err := readStep(ctx, sess, h.step)
	if err == nil {
		err = h.draw(at)
	}
	if err == nil {
		_, err = fmt.Fprintln(h.Out)
	}
	return err
}

func (h *ProgressHook) draw(at int64) error {
	part := 1.0
	if h.Last > 0 {
		part = min(float64(at)/float64(h.Last), 1)
	}
	full := int(part * progressWidth)
	left := "  "
	if done := at - h.first; done > 0 && h.Last > at {
		took := h.due.now().Sub(h.begin)
		left = fmt.Sprintf("  %v left", (took / time.Duration(done) * time.Duration(h.Last-at)).Round(time.Second))
	}
	_, err := fmt.Fprintf(h.Out, "\r[%s%s] %d/%d%s\x1b[K", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), at, h.Last, left)
	return err
}
