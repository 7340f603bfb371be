//go:build unix

package train_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/train"
)

// TestSignalHook sends the process a SIGTERM while it trains: the last checkpoint is that of the
// step that ran.
func TestSignalHook(t *testing.T) {
	term := train.NewSignalHook()
	defer func() { _ = term.End(t.Context(), nil) }()
	if term.Stopped() || term.Err() != nil {
		t.Error("training is stopped before the signal")
	}
	dir := t.TempDir()
	l := newLine(newScope())
	sess := monitored(t, l, train.TrainingOptions{
		IsChief: true, CheckpointDir: dir,
		Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 1_000_000}, term, &killAt{step: 7, t: t}},
	})
	steps := l.loop(t, sess)
	if steps < 7 || steps > 100_000 {
		t.Errorf("%d steps", steps)
	}
	stopped, ok := errors.AsType[*train.SignalError](term.Err())
	if !ok || stopped.ExitStatus() != 143 || !strings.Contains(stopped.Error(), "terminated") {
		t.Errorf("the error is %v", term.Err())
	}
	last, err := checkpoint.Latest(dir)
	if err != nil || !strings.HasSuffix(last, "/model.ckpt-"+strconv.Itoa(steps)) {
		t.Errorf("after %d steps the last checkpoint is %s, %v", steps, last, err)
	}
}

// killAt sends a SIGTERM to the process in a step.
type killAt struct {
	train.BaseHook
	step, done int
	t          *testing.T
}

// BeforeRun implements [train.SessionRunHook].
func (h *killAt) BeforeRun(context.Context, *train.RunContext) (train.RunArgs, error) {
	if h.done++; h.done == h.step {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			h.t.Error(err)
		}
	}
	return train.RunArgs{}, nil
}
