package train

import (
	"context"
	"log/slog"
	"time"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

// writeGraph writes the graph of a scope to an event file.
func writeGraph(w *summary.Writer, s *op.Scope) error {
	b, err := savedmodel.MarshalGraph(s.Graph().Def())
	if err != nil {
		return err
	}
	return w.AddGraph(b)
}

// writeSummary writes a tensor of serialized summaries to an event file.
func writeSummary(w *summary.Writer, step int64, t *tensor.Tensor) error {
	for _, text := range tensor.Values[string](t) {
		values, err := summary.Unmarshal([]byte(text))
		if err != nil {
			return err
		}
		if err := w.Add(step, values...); err != nil {
			return err
		}
	}
	return nil
}

// SummarySaverHook writes summaries of the first step, and then at intervals.
type SummarySaverHook struct {
	BaseHook
	Writer    *summary.Writer  // must not be nil; the hook does not close it
	SaveSteps int64            // global steps between summaries; 100 if both it and SaveEvery are 0
	SaveEvery time.Duration    // time between summaries; 0 for none
	Summary   op.Output        // string scalar; the zero Output for that of Scaffold
	Scaffold  *Scaffold        // nil for the first summary operation of the graph
	Now       func() time.Time // the clock; time.Now if nil

	scope *op.Scope
	step  *Variable
	due   trigger
	next  int64 // expected global step after the next step
	asked bool  // the current step fetches the summary
}

const defaultSummarySteps = 100

// Begin implements [SessionRunHook].
func (h *SummarySaverHook) Begin(s *op.Scope) (err error) {
	if h.SaveSteps == 0 && h.SaveEvery == 0 {
		h.SaveSteps = defaultSummarySteps
	}
	h.scope, h.due = s, newTrigger(h.SaveSteps, h.SaveEvery, h.Now)
	h.step, err = globalStepOf(s, "SummarySaverHook")
	return err
}

// summary returns the output to write; the zero Output for none.
func (h *SummarySaverHook) summary() op.Output {
	switch {
	case h.Summary.Node != nil:
		return h.Summary
	case h.Scaffold != nil:
		return h.Scaffold.SummaryOp
	}
	for _, o := range outputsIn(h.scope, SummaryOps) {
		return o
	}
	return op.Output{}
}

// BeforeRun implements [SessionRunHook].
func (h *SummarySaverHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	args := RunArgs{Fetches: []op.Output{h.step.Value}}
	sum := h.summary()
	if h.asked = sum.Node != nil && h.due.due(h.next); h.asked {
		args.Fetches = append(args.Fetches, sum)
	}
	return args, nil
}

// AfterRun implements [SessionRunHook].
func (h *SummarySaverHook) AfterRun(ctx context.Context, run *RunContext, values RunValues) (err error) {
	at := stepValue(&values.Fetched[0]) + 1
	if h.next == 0 || h.asked {
		if at, err = readStep(ctx, run.Session, h.step); err != nil {
			return err
		}
	}
	if h.asked {
		if !h.due.fired {
			if err := h.Writer.AddSession(at, summary.SessionLog{Status: summary.SessionStart}); err != nil {
				return err
			}
		}
		h.due.fire(at)
		if err := writeSummary(h.Writer, at, &values.Fetched[1]); err != nil {
			return err
		}
	}
	h.next = at + 1
	return nil
}

// End implements [SessionRunHook].
func (h *SummarySaverHook) End(context.Context, Session) error { return h.Writer.Flush() }

// StepCounterHook measures global steps per second at intervals.
type StepCounterHook struct {
	BaseHook
	EverySteps int64            // global steps between measurements; 100 if both it and Every are 0
	Every      time.Duration    // time between measurements; 0 for none
	Writer     *summary.Writer  // writes the scalar "global_step/sec"; nil for none; not closed
	Logger     *slog.Logger     // nil for none
	Now        func() time.Time // the clock; time.Now if nil

	step *Variable
	due  trigger
}

// stepRateTag is TensorFlow's tag for the rate of steps.
const stepRateTag = "global_step/sec"

// Begin implements [SessionRunHook].
func (h *StepCounterHook) Begin(s *op.Scope) (err error) {
	if h.EverySteps == 0 && h.Every == 0 {
		h.EverySteps = defaultSummarySteps
	}
	h.due = newTrigger(h.EverySteps, h.Every, h.Now)
	h.step, err = globalStepOf(s, "StepCounterHook")
	return err
}

// BeforeRun implements [SessionRunHook].
func (h *StepCounterHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.step.Value}}, nil
}

// AfterRun implements [SessionRunHook].
func (h *StepCounterHook) AfterRun(ctx context.Context, run *RunContext, values RunValues) error {
	if !h.due.due(stepValue(&values.Fetched[0]) + 1) {
		return nil
	}
	at, err := readStep(ctx, run.Session, h.step)
	if err != nil || !h.due.due(at) {
		return err
	}
	steps, took := h.due.fire(at)
	if took <= 0 {
		return nil
	}
	rate := float64(steps) / took.Seconds()
	if h.Logger != nil {
		h.Logger.Info(stepRateTag, "rate", rate, "step", at)
	}
	if h.Writer == nil {
		return nil
	}
	return h.Writer.Add(at, summary.Value{Tag: stepRateTag, Data: float32(rate)})
}
