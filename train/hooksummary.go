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

// writeSummary writes a serialized summary to an event file.
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

// SummarySaverHook writes summaries every so many steps or so much time, and of the first step.
type SummarySaverHook struct {
	BaseHook
	Writer    *summary.Writer // the hook does not close it
	SaveSteps int64           // 100 if it is 0 and SaveEvery is 0
	SaveEvery time.Duration
	Summary   op.Output // the zero Output for that of the scaffold
	// finalized before the session is made; nil for the first summary operation of the graph
	Scaffold *Scaffold
	Now      func() time.Time // the clock; time.Now if nil

	scope *op.Scope
	step  *Variable
	due   trigger
	next  int64 // number of the next step, as far as is known
	asked bool
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

// summary returns what is written; the zero Output for nothing.
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

// StepCounterHook says how many steps a second are made, every so many steps or so much time.
type StepCounterHook struct {
	BaseHook
	EverySteps int64 // 100 if it is 0 and Every is 0
	Every      time.Duration
	// gets the scalar "global_step/sec"; nil for none. The hook does not close it.
	Writer *summary.Writer
	Logger *slog.Logger     // nil for none
	Now    func() time.Time // the clock; time.Now if nil

	step *Variable
	due  trigger
}

// stepRateTag is the tag under which TensorFlow has the rate of steps.
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
