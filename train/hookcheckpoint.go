package train

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
)

// CheckpointSaverHook saves checkpoints: after a session is created, at intervals, and at the end.
type CheckpointSaverHook struct {
	BaseHook
	Dir       string        // folder of the checkpoints
	SaveSteps int64         // global steps between checkpoints; 0 for none
	SaveEvery time.Duration // time between checkpoints; 10 minutes if both it and SaveSteps are 0
	Basename  string        // of the prefixes; "model.ckpt" if empty
	Saver     *Saver        // nil for that of Scaffold
	Scaffold  *Scaffold     // nil for the first saver of the graph
	// Writer writes the graph and an event for each checkpoint; nil for none. The hook does not
	// close it.
	Writer *summary.Writer
	// AfterSave is called after each checkpoint, unless it is nil. Training ends if it returns true
	// or an error.
	AfterSave func(ctx context.Context, sess Session, prefix string, step int64) (stop bool, err error)
	Now       func() time.Time // the clock; time.Now if nil

	scope *op.Scope
	step  *Variable
	due   trigger
	graph bool // the graph has been written
}

const (
	defaultSaveEvery = 10 * time.Minute
	defaultBasename  = "model.ckpt"
)

// Begin implements [SessionRunHook].
func (h *CheckpointSaverHook) Begin(s *op.Scope) (err error) {
	if h.Basename == "" {
		h.Basename = defaultBasename
	}
	if h.SaveSteps == 0 && h.SaveEvery == 0 {
		h.SaveEvery = defaultSaveEvery
	}
	h.scope, h.due = s, newTrigger(h.SaveSteps, h.SaveEvery, h.Now)
	h.step, err = globalStepOf(s, "CheckpointSaverHook")
	return err
}

// AfterCreateSession implements [SessionRunHook].
func (h *CheckpointSaverHook) AfterCreateSession(ctx context.Context, sess Session, _ *Coordinator) error {
	if err := h.writeGraph(); err != nil {
		return err
	}
	at, err := readStep(ctx, sess, h.step)
	if err != nil {
		return err
	}
	_, err = h.save(ctx, sess, at)
	return err
}

func (h *CheckpointSaverHook) saver() (*Saver, error) {
	switch {
	case h.Saver != nil:
		return h.Saver, nil
	case h.Scaffold != nil && h.Scaffold.Saver != nil:
		return h.Scaffold.Saver, nil
	}
	for _, v := range h.scope.Collection(Savers) {
		if sv, ok := v.(*Saver); ok {
			return sv, nil
		}
	}
	return nil, status.FailedPreconditionf("CheckpointSaverHook: the graph has no saver")
}

func (h *CheckpointSaverHook) writeGraph() error {
	if h.Writer == nil || h.graph {
		return nil
	}
	h.graph = true
	return writeGraph(h.Writer, h.scope)
}

// BeforeRun implements [SessionRunHook].
func (h *CheckpointSaverHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	return RunArgs{Fetches: []op.Output{h.step.Value}}, nil
}

// AfterRun implements [SessionRunHook].
func (h *CheckpointSaverHook) AfterRun(ctx context.Context, run *RunContext, values RunValues) error {
	if !h.due.due(stepValue(&values.Fetched[0]) + 1) {
		return nil
	}
	at, err := readStep(ctx, run.Session, h.step)
	if err != nil || !h.due.due(at) {
		return err
	}
	stop, err := h.save(ctx, run.Session, at)
	if stop {
		run.RequestStop()
	}
	return err
}

// End implements [SessionRunHook].
func (h *CheckpointSaverHook) End(ctx context.Context, sess Session) error {
	at, err := readStep(ctx, sess, h.step)
	if err == nil && at != h.due.step {
		_, err = h.save(ctx, sess, at)
	}
	return err
}

func (h *CheckpointSaverHook) save(ctx context.Context, sess Session, step int64) (stop bool, err error) {
	saver, err := h.saver()
	if err != nil {
		return false, err
	}
	prefix, err := saver.Save(ctx, sess, fileio.Join(h.Dir, h.Basename), step)
	if err != nil {
		return false, err
	}
	h.due.fire(step)
	if h.Writer != nil {
		if err := h.Writer.AddSession(step, summary.SessionLog{Status: summary.SessionCheckpoint, Checkpoint: prefix}); err != nil {
			return false, err
		}
	}
	if h.AfterSave == nil {
		return false, nil
	}
	return h.AfterSave(ctx, sess, prefix, step)
}
