package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// rate is the learning rate. The gradient is 1, so after n steps the variable is exactly -n*rate.
const rate = 1.0 / 1024

// A training is one synchronous training program per worker. Each is started again when it fails.
type training struct {
	spec    cluster.Spec
	targets []string // of the workers
	dir     string   // of checkpoints
	log     *slog.Logger

	steps    atomic.Int64 // steps of the chief
	last     atomic.Int64 // time of the last step, Unix ns
	restarts atomic.Int64 // of programs
	restores atomic.Int64 // sessions of the chief
	resets   atomic.Int64 // of the cluster
	// clearing counts the starts and ends of resets
	clearing atomic.Int64
}

// model adds the variables and the update to a graph.
func (t *training) model(worker int) (s *op.Scope, w, step *train.Variable, opt *train.SyncReplicasOptimizer, update *graph.Node) {
	s = op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{
		Cluster: t.spec, WorkerDevice: fmt.Sprintf("/job:worker/task:%d", worker),
	}))
	step = train.GlobalStep(s)
	w = train.NewVariable(s, "w", tensor.Shape{}, tensor.Float32, train.Zeros)
	opt = train.NewSyncReplicasOptimizer(train.NewGradientDescent(rate), len(t.targets), len(t.targets))
	update = opt.Minimize(s, op.Identity(s, w.Value), step)
	return s, w, step, opt, update
}

// run trains on one worker until ctx ends.
func (t *training) run(ctx context.Context, worker int) {
	for ctx.Err() == nil {
		err := t.program(ctx, worker)
		if ctx.Err() == nil {
			t.log.Info("a training program ends", "worker", worker, "error", err)
			t.restarts.Add(1)
			if worker == 0 && err != nil && strings.Contains(err.Error(), "is closed") {
				t.reset(ctx)
			}
			pause(ctx, time.Second)
		}
	}
}

// reset drops the variables and queues of all tasks. A chief that ends with an error closes the
// queue of tokens, as TensorFlow's does, and a closed queue stays closed.
func (t *training) reset(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	t.resets.Add(1)
	t.clearing.Add(1)
	defer t.clearing.Add(1)
	if err := weft.Reset(ctx, t.targets[0], nil, nil); err != nil {
		t.log.Info("cannot reset the cluster", "error", err)
	}
}

// A sessionCounter counts the sessions of a program, which makes a new one when a task has failed.
type sessionCounter struct {
	train.BaseHook
	sessions *atomic.Int64
}

// AfterCreateSession implements [train.SessionRunHook].
func (c *sessionCounter) AfterCreateSession(context.Context, train.Session, *train.Coordinator) error {
	c.sessions.Add(1)
	return nil
}

func (t *training) program(ctx context.Context, worker int) error {
	chief := worker == 0
	s, _, step, opt, update := t.model(worker)
	hooks := []train.SessionRunHook{opt.MakeSessionRunHook(chief)}
	if chief {
		hooks = append(hooks, &sessionCounter{sessions: &t.restores})
	}
	sess, err := train.MonitoredTrainingSession(ctx, s, train.TrainingOptions{
		Master: t.targets[worker], IsChief: chief, CheckpointDir: t.dir, SaveCheckpointSteps: 50,
		Hooks: hooks, SaveSummariesSteps: -1, LogStepCountSteps: -1,
		SessionOptions: []weft.SessionOption{weft.WithDeviceFilters("/job:ps", fmt.Sprintf("/job:worker/task:%d", worker))},
		MaxWait:        2 * time.Minute, StopGrace: 10 * time.Second, Logger: t.log,
	})
	if err != nil {
		return err
	}
	return sess.Loop(ctx, func(ctx context.Context) error {
		_, err := sess.Run(ctx, nil, []op.Output{step.Value}, []*graph.Node{update})
		if err == nil && chief {
			t.steps.Add(1)
			t.last.Store(time.Now().UnixNano())
		}
		pause(ctx, 10*time.Millisecond)
		return err
	})
}

// check reads the variables after training, in the same container. drift is by how many steps the
// variable and the global step disagree.
func (t *training) check(ctx context.Context) (steps int64, drift int64, err error) {
	s, w, step, _, _ := t.model(0)
	g, err := s.Finalize()
	if err != nil {
		return 0, 0, err
	}
	sess, err := weft.NewSession(t.targets[0], g, weft.WithDeviceFilters("/job:ps", "/job:worker/task:0"))
	if err != nil {
		return 0, 0, err
	}
	defer sess.Close()
	got, err := sess.Run(ctx, nil, []graph.Output{w.Value, step.Value}, nil)
	if err != nil {
		return 0, 0, err
	}
	n := got[1].Go().(int64)                       //nolint:forcetypeassert // the global step
	made := -float64(got[0].Go().(float32)) / rate //nolint:forcetypeassert // the variable
	return n, int64(math.Round(made)) - n, nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
