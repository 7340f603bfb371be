package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// line is a model y = w x; training brings w to 3.
type line struct {
	scope  *op.Scope
	x      op.Output
	w      *train.Variable
	loss   op.Output
	update *graph.Node
}

func newLine(s *op.Scope) *line {
	l := &line{scope: s, x: op.Placeholder(s.Named("x"), tensor.Float32)}
	l.w = train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros)
	wrong := op.Sub(s, op.Mul(s, l.w.Value, l.x), op.Mul(s, l.x, op.Const(s, float32(3))))
	l.loss = op.Mul(s.Named("loss"), wrong, wrong)
	train.ScalarSummary(s, "loss_summary", l.loss)
	// Hooks fetch the step in the run that increments it. A resource variable and the control
	// dependency below make the fetched value always the one before the increment.
	step := train.NewVariable(s.Absolute(), "global_step", tensor.Shape{}, tensor.Int64, train.Zeros, train.NotTrainable(), train.Resource())
	s.AddToCollection("global_step", step)
	l.update = train.Minimize(s.WithControlDependencies(step.Value.Node), train.NewGradientDescent(0.1), l.loss, step)
	return l
}

// loop trains with x = 1 until the session should stop, and returns the number of steps.
func (l *line) loop(t *testing.T, sess *train.MonitoredSession) int {
	t.Helper()
	steps := 0
	err := sess.Loop(t.Context(), func(ctx context.Context) error {
		_, err := sess.Run(ctx, map[op.Output]tensor.Tensor{l.x: tensor.Scalar(float32(1))}, nil, []*graph.Node{l.update})
		steps++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func monitored(t *testing.T, l *line, o train.TrainingOptions) *train.MonitoredSession {
	t.Helper()
	sess, err := train.MonitoredTrainingSession(t.Context(), l.scope, o)
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// TestTraining trains, continues from the checkpoint, and checks the files of the usual hooks.
func TestTraining(t *testing.T) {
	dir := t.TempDir()
	for run, want := range []int{20, 10} {
		l := newLine(newScope())
		stop := &train.StopAtStepHook{LastStep: 20}
		if run > 0 {
			stop = &train.StopAtStepHook{NumSteps: 10}
		}
		sess := monitored(t, l, train.TrainingOptions{
			IsChief: true, CheckpointDir: dir, SaveCheckpointSteps: 8, SaveSummariesSteps: 5, LogStepCountSteps: 5,
			Hooks: []train.SessionRunHook{stop},
		})
		if got := l.loop(t, sess); got != want {
			t.Errorf("run %d made %d steps, want %d", run, got, want)
		}
	}
	state, err := checkpoint.ReadState(dir, checkpoint.StateFile)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, p := range state.All {
		steps = append(steps, strings.TrimPrefix(filepath.Base(p), "model.ckpt-"))
	}
	if got := strings.Join(steps, " "); got != "8 16 20 28 30" {
		t.Errorf("there are checkpoints of the steps %s", got)
	}
	checkEvents(t, dir)
}

func checkEvents(t *testing.T, dir string) {
	t.Helper()
	files, err := summary.Files(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("event files %q, %v", files, err)
	}
	got := map[string][]int64{}
	for _, file := range files {
		r, err := summary.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range e.Values {
				got[v.Tag] = append(got[v.Tag], e.Step)
			}
			if e.Graph != nil {
				got["graph"] = append(got["graph"], e.Step)
			}
			if e.Session != nil && e.Session.Status == summary.SessionCheckpoint {
				got["checkpoint"] = append(got["checkpoint"], e.Step)
			}
		}
		r.Close()
	}
	for tag, want := range map[string][]int64{
		"loss_summary": {1, 6, 11, 16, 21, 26}, "global_step/sec": {6, 11, 16, 26}, "graph": {0, 0},
		"checkpoint": {0, 8, 16, 20, 20, 28, 30},
	} {
		if !slices.Equal(got[tag], want) {
			t.Errorf("%s at the steps %v, want %v", tag, got[tag], want)
		}
	}
}

// TestHooks trains with the hooks that are not used by default.
func TestHooks(t *testing.T) {
	dir := t.TempDir()
	l := newLine(newScope())
	var logged, bar bytes.Buffer
	final := &train.FinalOpsHook{Fetches: []op.Output{l.w.Value}}
	feeds := 0
	model := &train.SavedModelHook{Export: train.Export{
		Dir: filepath.Join(dir, "model"), ClearDevices: true, StripDefaults: true,
		Signatures: map[string]savedmodel.Signature{savedmodel.DefaultSignature: {
			Inputs:  map[string]savedmodel.TensorInfo{"x": savedmodel.InfoOf(l.x, tensor.PartialShape{})},
			Outputs: map[string]savedmodel.TensorInfo{"loss": savedmodel.InfoOf(l.loss, tensor.PartialShape{})},
			Method:  savedmodel.MethodPredict,
		}},
	}}
	sess, err := train.NewMonitoredSession(t.Context(), "local", l.scope, train.MonitoredOptions{Chief: true, Hooks: []train.SessionRunHook{
		&train.FeedFnHook{Feed: func(context.Context) (map[op.Output]tensor.Tensor, error) {
			if feeds++; feeds > 12 {
				return nil, io.EOF
			}
			return map[op.Output]tensor.Tensor{l.x: tensor.Scalar(float32(1))}, nil
		}},
		&train.LoggingTensorHook{Tensors: map[string]op.Output{"w": l.w.Value}, EverySteps: 6, Logger: textLog(&logged)},
		&train.ProgressHook{Out: &bar, Last: 12},
		&train.ProfilerHook{Dir: dir, SaveSteps: 5},
		&train.NanTensorHook{Loss: l.loss},
		final, model,
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = sess.Loop(t.Context(), func(ctx context.Context) error {
		_, err := sess.Run(ctx, nil, nil, []*graph.Node{l.update})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Value[float32](&final.Values()[0]); math.Abs(float64(got)-3) > 0.3 {
		t.Errorf("w is %v", got)
	}
	if got := strings.Count(logged.String(), "msg=tensors w="); got != 2 {
		t.Errorf("logged %q", logged.String())
	}
	if !strings.Contains(bar.String(), "[########################################] 12/12") {
		t.Errorf("the bar is %q", bar.String())
	}
	checkTimelines(t, dir)
	checkModel(t, filepath.Join(dir, "model"))
}

// checkModel loads the model of a line and runs it.
func checkModel(t *testing.T, dir string) {
	t.Helper()
	m, err := serve.Load(t.Context(), "local", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sig.Run(t.Context(), map[string]any{"x": float32(2)})
	if err != nil {
		t.Fatal(err)
	}
	if loss, ok := out["loss"].(float32); !ok || loss > 0.5 {
		t.Errorf("the loss of the model is %v", out["loss"])
	}
}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func checkTimelines(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "timeline-*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("timelines %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Dur      float64
		}
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range trace.TraceEvents {
		names[e.Name] = e.Ph == "X" || names[e.Name]
	}
	if !names["loss"] || !names["GradientDescent"] {
		t.Errorf("the trace has %v", names)
	}
}

// TestNaN diverges, which ends training with or without an error.
func TestNaN(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := newScope()
		x := op.Placeholder(s, tensor.Float32)
		loss := op.Identity(s, x)
		step := train.GlobalStep(s).AssignAdd(s, op.Const(s, int64(1)))
		var logged bytes.Buffer
		sess, err := train.NewMonitoredSession(t.Context(), "local", s, train.MonitoredOptions{
			Chief: true, Hooks: []train.SessionRunHook{&train.NanTensorHook{Loss: loss, OnlyStop: only, Logger: textLog(&logged)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = sess.Loop(t.Context(), func(ctx context.Context) error {
			_, err := sess.Run(ctx, map[op.Output]tensor.Tensor{x: tensor.Scalar(float32(math.NaN()))}, nil, []*graph.Node{step})
			return err
		})
		if only != (err == nil) || !only && !strings.HasSuffix(err.Error(), "at global step 1") {
			t.Errorf("only stop = %v: %v", only, err)
		}
		if only != strings.Contains(logged.String(), "step=1") {
			t.Errorf("only stop = %v: logged %q", only, logged.String())
		}
	}
}

// TestWorkerWaitsForChief starts with a worker, which waits until the chief has initialized the
// variables.
func TestWorkerWaitsForChief(t *testing.T) {
	cl := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	build := func(task int) *line {
		return newLine(newScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
			PSTasks: 1, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", task),
		})))
	}
	waiting := make(chan struct{})
	var once sync.Once // the worker says it again when other variables are missing
	said := writerFunc(func(b []byte) {
		if bytes.Contains(b, []byte("waiting for the chief to initialize")) {
			once.Do(func() { close(waiting) })
		}
	})
	done := make(chan error, 1)
	go func() {
		l := build(1)
		sess, err := train.MonitoredTrainingSession(t.Context(), l.scope, train.TrainingOptions{
			Master: cl.Target("worker", 1), RecoveryWait: 10 * time.Millisecond, Logger: textLog(said),
			Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 40}},
		})
		if err == nil {
			l.loop(t, sess)
		}
		done <- err
	}()
	<-waiting
	l := build(0)
	sess := monitored(t, l, train.TrainingOptions{
		Master: cl.Target("worker", 0), IsChief: true, Hooks: []train.SessionRunHook{&train.StopAtStepHook{LastStep: 40}},
	})
	l.loop(t, sess)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// writerFunc calls a function with what is written.
type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// failOnce fails one step with an error.
type failOnce struct {
	train.BaseHook
	at       int64
	err      error
	sessions int
	step     *train.Variable
}

func (h *failOnce) Begin(s *op.Scope) error {
	h.step = train.GlobalStep(s)
	return nil
}

func (h *failOnce) AfterCreateSession(context.Context, train.Session, *train.Coordinator) error {
	h.sessions++
	return nil
}

func (h *failOnce) AfterRun(ctx context.Context, run *train.RunContext, _ train.RunValues) error {
	out, err := run.Session.Run(ctx, nil, []op.Output{h.step.Value}, nil)
	if err == nil && tensor.Value[int64](&out[0]) == h.at && h.err != nil {
		err, h.err = h.err, nil
	}
	return err
}

// TestRecovery fails a step once. After the loss of a task training continues from the checkpoint;
// any other error ends it.
func TestRecovery(t *testing.T) {
	for _, tt := range []struct {
		err  error
		goes bool
	}{
		{status.Abortedf("a task was restarted"), true},
		{status.Unavailablef("a task is gone"), true},
		{status.Internalf("broken"), false},
	} {
		l := newLine(newScope())
		hook := &failOnce{at: 13, err: tt.err}
		sess := monitored(t, l, train.TrainingOptions{
			IsChief: true, CheckpointDir: t.TempDir(), SaveCheckpointSteps: 5,
			Hooks: []train.SessionRunHook{hook, &train.StopAtStepHook{LastStep: 20}},
		})
		steps := 0
		err := sess.Loop(t.Context(), func(ctx context.Context) error {
			_, err := sess.Run(ctx, map[op.Output]tensor.Tensor{l.x: tensor.Scalar(float32(1))}, nil, []*graph.Node{l.update})
			steps++
			return err
		})
		if tt.goes {
			// The checkpoint of step 10 was restored after step 13, which failed. The failed
			// step is counted once, but runs twice.
			if err != nil || steps != 22 || hook.sessions != 2 {
				t.Errorf("%v: %d steps in %d sessions, %v", tt.err, steps, hook.sessions, err)
			}
		} else if !errors.Is(err, tt.err) || hook.sessions != 1 {
			t.Errorf("%v: %d sessions, %v", tt.err, hook.sessions, err)
		}
	}
}

// TestMistakes uses hooks wrongly, which fails before a session is created.
func TestMistakes(t *testing.T) {
	for name, hook := range map[string]train.SessionRunHook{
		"no last step":   &train.StopAtStepHook{},
		"no global step": &train.StopAtStepHook{LastStep: 1},
		"no logger":      &train.LoggingTensorHook{EverySteps: 1},
		"no interval":    &train.ProfilerHook{},
		"no gradients":   train.NewSyncReplicasOptimizer(train.NewGradientDescent(1), 1, 1).MakeSessionRunHook(true),
	} {
		s := newScope()
		if _, err := train.NewMonitoredSession(t.Context(), "local", s, train.MonitoredOptions{Hooks: []train.SessionRunHook{hook}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCancelled cancels a step with its context. The session can still be closed.
func TestCancelled(t *testing.T) {
	s := newScope()
	q := op.FIFOQueueV2(s, []tensor.DType{tensor.Float32})
	next := op.QueueDequeueV2(s, q, []tensor.DType{tensor.Float32})
	sess, err := train.NewMonitoredSession(t.Context(), "local", s, train.MonitoredOptions{Chief: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := sess.Run(ctx, nil, next, nil); err == nil {
		t.Error("a step that cannot finish returned no error")
	}
	if !sess.ShouldStop() {
		t.Error("training is not over")
	}
	if err := sess.Close(); err != nil {
		t.Error(err)
	}
	if _, err := sess.Run(t.Context(), nil, next, nil); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("a closed session: %v", err)
	}
	var _ train.Session = (*weft.Session)(nil)
}
