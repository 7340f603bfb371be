package guides

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// printHook prints the loss now and then.
type printHook struct {
	train.BaseHook
	out        io.Writer
	name       string
	step, loss op.Output
}

// BeforeRun implements [train.SessionRunHook].
func (h *printHook) BeforeRun(context.Context, *train.RunContext) (train.RunArgs, error) {
	return train.RunArgs{Fetches: []op.Output{h.step, h.loss}}, nil
}

// AfterRun implements [train.SessionRunHook].
func (h *printHook) AfterRun(_ context.Context, _ *train.RunContext, values train.RunValues) error {
	if step := values.Fetched[0].Go().(int64); step%100 == 0 {
		fmt.Fprintf(h.out, "%s step : %d ,loss : %v\n", h.name, step, values.Fetched[1].Go())
	}
	return nil
}

// monitored is the program examples/python/tf1/monitored.py in Go.
func monitored(ctx context.Context, def cluster.ServerDef, modelDir string, lastStep int64, out io.Writer) error {
	s, err := server.New(def)
	if err != nil {
		return err
	}
	if def.Job == "ps" {
		return s.Run(ctx)
	}
	defer func() { _ = s.Shutdown(context.WithoutCancel(ctx)) }()
	if err := s.Start(); err != nil {
		return err
	}

	device := fmt.Sprintf("/job:%s/task:%d", def.Job, def.Task)
	setter := train.DeviceSetter{WorkerDevice: device, Cluster: def.Cluster}
	g := op.NewScope().WithDeviceFunc(train.ReplicaDeviceSetter(setter))
	step := train.GlobalStep(g)
	x := op.Placeholder(g, tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 3)))
	y := op.Placeholder(g, tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1)))
	w := train.NewVariable(g, "w", tensor.Shape{3, 1}, tensor.Float32, train.Zeros)
	b := train.NewVariable(g, "b", tensor.Shape{}, tensor.Float32, train.Zeros)
	flat := op.Reshape(g, op.MatMul(g, x, w.Value), op.Const(g, []int32{-1}))
	prediction := op.AddV2(g, flat, b.Value)
	loss := op.Mean(g, op.Square(g, op.Sub(g, prediction, y)), op.Const(g, int32(0)))
	rate := train.ExponentialDecay{Rate: 0.1, Steps: 100, Factor: 0.9}.At(g, step.Value)
	update := train.Minimize(g, &train.Momentum{Schedule: rate, Momentum: 0.5}, loss, step)

	hooks := []train.SessionRunHook{
		&train.StopAtStepHook{LastStep: lastStep},
		&train.NanTensorHook{Loss: loss},
		&printHook{out: out, name: device, step: step.Value, loss: loss},
	}
	sess, err := train.MonitoredTrainingSession(ctx, g, train.TrainingOptions{
		Master:              s.Target(),
		IsChief:             def.Job == "master",
		CheckpointDir:       modelDir,
		SaveCheckpointEvery: time.Minute,
		Hooks:               hooks,
		SessionOptions:      []weft.SessionOption{weft.WithDeviceFilters("/job:ps", device)},
	})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(def.Task), 0))
	return sess.Loop(ctx, func(ctx context.Context) error {
		points, values, err := drawPoints(rng)
		if err != nil {
			return err
		}
		feeds := map[graph.Output]tensor.Tensor{x: points, y: values}
		_, err = sess.Run(ctx, feeds, nil, []*graph.Node{update})
		return err
	})
}

// drawPoints returns 50 points and the values of a linear function there.
func drawPoints(rng *rand.Rand) (points, values tensor.Tensor, err error) {
	p, v := make([]float32, 0, 150), make([]float32, 0, 50)
	for range 50 {
		a, b, c := float32(rng.NormFloat64()), float32(rng.NormFloat64()), float32(rng.NormFloat64())
		p, v = append(p, a, b, c), append(v, a-2*b+3*c+4)
	}
	points, err = tensor.FromSlice(tensor.Shape{50, 3}, p)
	return points, tensor.Vector(v...), err
}

// TestMonitored runs the program as a parameter server, a master and a worker.
func TestMonitored(t *testing.T) {
	listen, err := server.StartCluster(map[string]int{"master": 1, "ps": 1, "worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := listen.Spec() // free ports
	if err := listen.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	serving, stop := context.WithCancel(t.Context())
	var ps, others sync.WaitGroup
	var master strings.Builder
	ps.Go(func() {
		if err := monitored(serving, cluster.ServerDef{Cluster: spec, Job: "ps"}, "", 0, io.Discard); err != nil && serving.Err() == nil {
			t.Error(err)
		}
	})
	for _, job := range []string{"master", "worker"} {
		out := io.Writer(&master)
		if job == "worker" {
			out = io.Discard
		}
		others.Go(func() {
			if err := monitored(t.Context(), cluster.ServerDef{Cluster: spec, Job: job}, dir, 400, out); err != nil {
				t.Error(job, err)
			}
		})
	}
	others.Wait()
	stop()
	ps.Wait()
	path, err := train.LatestCheckpoint(dir)
	if err != nil || path == "" {
		t.Errorf("the checkpoint is %q, %v", path, err)
	}
	t.Log(master.String())
}

// TestMovePage checks that the Python of the guide is a part of a program that "make interop" runs.
func TestMovePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/move-tensorflow1.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../python/tf1/monitored.py")
	if err != nil {
		t.Fatal(err)
	}
	source := string(program) + strings.ReplaceAll(string(program), "\n    ", "\n")
	blocks := regexp.MustCompile("(?s)\n```python\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(source, b[1]) {
			t.Errorf("this block is not in the program:\n%s", b[1])
		}
	}
}
