package train_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestSupervisor trains in two runs, and checks the files of both.
func TestSupervisor(t *testing.T) {
	dir := t.TempDir()
	for run := range int64(2) {
		s := newScope()
		step := train.GlobalStep(s)
		w := train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros)
		train.ScalarSummary(s, "w_summary", w.Value)
		add := step.AssignAdd(s, op.Const(s, int64(1)))
		sv, err := train.NewSupervisor(s, train.SupervisorOptions{IsChief: true, LogDir: dir, SaveModelEvery: time.Hour, SaveSummariesEvery: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		err = sv.ManagedSession(t.Context(), "local", func(ctx context.Context, sess *weft.Session) error {
			out, err := sess.Run(ctx, nil, []op.Output{step.Value}, nil)
			if err != nil {
				return err
			}
			if got := tensor.Value[int64](&out[0]); got != 3*run {
				t.Errorf("run %d starts at step %d", run, got)
			}
			for range 3 {
				if _, err := sess.Run(ctx, nil, nil, []*graph.Node{add}); err != nil {
					return err
				}
			}
			if sv.ShouldStop() {
				t.Error("the supervisor has stopped")
			}
			_, err = sv.Save(ctx, sess)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := filepath.Base(latestIn(t, dir)); got != "model.ckpt-6" {
		t.Errorf("the latest is %s", got)
	}
	files, err := summary.Files(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("event files %q, %v", files, err)
	}
}

// TestSupervisorStops checks that the error of the caller or of a goroutine is returned, and that
// the end of the input is not.
func TestSupervisorStops(t *testing.T) {
	s := newScope()
	q := op.FIFOQueueV2(s, []tensor.DType{tensor.Float32})
	next := op.QueueDequeueV2(s, q, []tensor.DType{tensor.Float32})
	closed := op.QueueCloseV2(s, q)
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		f    func(ctx context.Context, sv *train.Supervisor, sess *weft.Session) error
		want error
	}{
		"caller": {func(context.Context, *train.Supervisor, *weft.Session) error { return failed }, failed},
		"goroutine": {func(ctx context.Context, sv *train.Supervisor, _ *weft.Session) error {
			sv.Loop(time.Hour, func(context.Context) error { return failed })
			if !sv.WaitForStop(ctx) || !sv.ShouldStop() {
				return ctx.Err()
			}
			return nil
		}, failed},
		"end of the input": {func(ctx context.Context, _ *train.Supervisor, sess *weft.Session) error {
			if _, err := sess.Run(ctx, nil, nil, []*graph.Node{closed}); err != nil {
				return err
			}
			_, err := sess.Run(ctx, nil, next, nil)
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sv, err := train.NewSupervisor(s, train.SupervisorOptions{IsChief: true})
			if err != nil {
				t.Fatal(err)
			}
			err = sv.ManagedSession(t.Context(), "local", func(ctx context.Context, sess *weft.Session) error { return tt.f(ctx, sv, sess) })
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
