package train_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestRelativeCheckpointDir trains twice in a folder that is given relative to the working
// directory: the second run continues from the last checkpoint of the first.
func TestRelativeCheckpointDir(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join("out", "ckpt")
	for run, want := range []int{20, 10} {
		l := newLine(newScope())
		sess := monitored(t, l, train.TrainingOptions{
			IsChief: true, CheckpointDir: dir, Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: int64(20 + 10*run)}},
		})
		if got := l.loop(t, sess); got != want {
			t.Errorf("run %d made %d steps, want %d", run, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, checkpoint.StateFile))
	if first, _, _ := strings.Cut(string(text), "\n"); err != nil || first != `model_checkpoint_path: "model.ckpt-30"` {
		t.Errorf("the state file begins with %s, %v", first, err)
	}
}

// TestRelativeLogDir is [TestRelativeCheckpointDir] with a supervisor.
func TestRelativeLogDir(t *testing.T) {
	t.Chdir(t.TempDir())
	for run := range int64(2) {
		s := newScope()
		step := train.GlobalStep(s)
		add := step.AssignAdd(s, op.Const(s, int64(1)))
		sv, err := train.NewSupervisor(s, train.SupervisorOptions{IsChief: true, LogDir: "log", SaveModelEvery: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		err = sv.ManagedSession(t.Context(), "local", func(ctx context.Context, sess *weft.Session) error {
			out, err := sess.Run(ctx, nil, []op.Output{step.Value}, []*graph.Node{add})
			if err != nil {
				return err
			}
			if got := tensor.Value[int64](&out[0]); got < run {
				t.Errorf("run %d starts at step %d", run, got)
			}
			_, err = sv.Save(ctx, sess)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := latestIn(t, "log"), filepath.Join("log", "model.ckpt-2"); got != want {
		t.Errorf("the latest is %s, want %s", got, want)
	}
}

// TestMissingCheckpoint removes the latest checkpoint of a folder, but not the state file that
// names it: training does not start at step 0, and removes nothing.
func TestMissingCheckpoint(t *testing.T) {
	dir := t.TempDir()
	l := newLine(newScope())
	sess := monitored(t, l, train.TrainingOptions{
		IsChief: true, CheckpointDir: dir, SaveCheckpointSteps: 10, Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 20}},
	})
	l.loop(t, sess)
	latest := latestIn(t, dir)
	if err := os.Rename(checkpoint.IndexFile(latest), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	before := names(t, dir)
	_, err := train.MonitoredTrainingSession(t.Context(), newLine(newScope()).scope, train.TrainingOptions{
		IsChief: true, CheckpointDir: dir, SaveSummariesSteps: -1, LogStepCountSteps: -1,
	})
	if status.CodeOf(err) != status.NotFound {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{latest, filepath.Join(dir, checkpoint.StateFile), filepath.Join(dir, "model.ckpt-10")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if after := names(t, dir); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("the files were %q and are %q", before, after)
	}
}
