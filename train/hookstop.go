package train

import (
	"context"
	"log/slog"
	"math"
	"slices"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// globalStepOf returns the global step of a graph, or an error that names the hook that needs it.
func globalStepOf(s *op.Scope, hook string) (*Variable, error) {
	for _, v := range Variables(s, globalStepKey) {
		return v, nil
	}
	return nil, status.FailedPreconditionf("Global step should be created to use %s.", hook)
}

// readStep returns the current value of the global step.
func readStep(ctx context.Context, sess Session, step *Variable) (int64, error) {
	out, err := sess.Run(ctx, nil, []op.Output{step.Value}, nil)
	if err != nil {
		return 0, err
	}
	return stepValue(&out[0]), nil
}

// stepValue returns the value of a global step of type int32 or int64.
func stepValue(t *tensor.Tensor) int64 {
	if t.DType() == tensor.Int32 {
		return int64(tensor.Value[int32](t))
	}
	return tensor.Value[int64](t)
}

// StopAtStepHook ends training after a number of steps or at a given step. It counts global steps,
// to which all workers contribute. Exactly one of NumSteps and LastStep must be set.
type StopAtStepHook struct {
	BaseHook
	NumSteps int64 // steps after the first session is created
	LastStep int64 // value of the global step at the end

	step *Variable
	last int64 // value of the global step at the end; 0 while it is unknown
}

// Begin implements [SessionRunHook].
func (h *StopAtStepHook) Begin(s *op.Scope) (err error) {
	if (h.NumSteps > 0) == (h.LastStep > 0) {
		return status.InvalidArgumentf("StopAtStepHook: one of NumSteps and LastStep must be given")
	}
	h.step, err = globalStepOf(s, "StopAtStepHook")
	h.last = h.LastStep
	return err
}

// AfterCreateSession implements [SessionRunHook].
func (h *StopAtStepHook) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) error {
	if h.last > 0 {
		return nil
	}
	at, err := readStep(ctx, sess, h.step)
	h.last = at + h.NumSteps
	return err
}

// BeforeRun implements [SessionRunHook].
func (h *StopAtStepHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.step.Value}}, nil
}

// AfterRun implements [SessionRunHook]. The fetched value may or may not include this step, so the
// value is read again near the end.
func (h *StopAtStepHook) AfterRun(ctx context.Context, run *RunContext, values RunValues) error {
	if stepValue(&values.Fetched[0])+1 < h.last {
		return nil
	}
	at, err := readStep(ctx, run.Session, h.step)
	if err == nil && at >= h.last {
		run.RequestStop()
	}
	return err
}

// NanTensorHook ends training when an element of the loss is not a number. Both the error and the
// log line name the loss and, if the graph has one, the global step.
type NanTensorHook struct {
	BaseHook
	Loss     op.Output    // float32 or float64, of any shape
	OnlyStop bool         // request a stop instead of failing the step with InvalidArgument
	Logger   *slog.Logger // logs the stop if OnlyStop; nil for no log

	step *Variable // nil if the graph has no global step
}

// Begin implements [SessionRunHook].
func (h *NanTensorHook) Begin(s *op.Scope) error {
	for _, v := range Variables(s, globalStepKey) {
		h.step = v
	}
	return nil
}

// BeforeRun implements [SessionRunHook].
func (h *NanTensorHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.Loss}}, nil
}

// AfterRun implements [SessionRunHook].
func (h *NanTensorHook) AfterRun(ctx context.Context, run *RunContext, values RunValues) error {
	if !hasNaN(&values.Fetched[0]) {
		return nil
	}
	at := int64(NoStep)
	if h.step != nil {
		var err error
		if at, err = readStep(ctx, run.Session, h.step); err != nil {
			return status.Errorf(status.CodeOf(err), "reading the global step after a loss of NaN: %w", err)
		}
	}
	switch {
	case !h.OnlyStop && at == NoStep:
		return status.InvalidArgumentf("Model diverged with loss = NaN: %v", h.Loss)
	case !h.OnlyStop:
		return status.InvalidArgumentf("Model diverged with loss = NaN: %v at global step %d", h.Loss, at)
	case h.Logger != nil:
		h.Logger.Warn("Model diverged with loss = NaN.", "loss", h.Loss.String(), "step", at)
	}
	run.RequestStop()
	return nil
}

func hasNaN(t *tensor.Tensor) bool {
	switch t.DType() {
	case tensor.Float32:
		return slices.ContainsFunc(tensor.Values[float32](t), func(v float32) bool { return math.IsNaN(float64(v)) })
	case tensor.Float64:
		return slices.ContainsFunc(tensor.Values[float64](t), math.IsNaN)
	}
	return false
}
