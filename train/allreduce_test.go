package train_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// fitTogether trains on two workers with copies of a model. options returns the data and the
// options of a worker.
func fitTogether(
	t *testing.T, models [2]*nn.Model, options func(task int) (train.Dataset, train.FitOptions),
) (histories [2]*train.History, errs [2]error) {
	t.Helper()
	cl, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var running sync.WaitGroup
	for task := range 2 {
		running.Go(func() {
			set, o := options(task)
			o.Cluster = &train.FitCluster{Spec: cl.Spec(), Task: task, AllReduce: true}
			if histories[task], errs[task] = train.Fit(ctx, models[task], set, o); errs[task] != nil {
				cancel(errs[task]) // the other worker would wait
			}
		})
	}
	running.Wait()
	return histories, errs
}

// normalized returns a model with moving averages.
func normalized() *nn.Model {
	m := classifier()
	m.Network = nn.Sequential{&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.BatchNormalization{}, &nn.Dense{Units: 3}}
	return m
}

// TestAllReduce compares two workers, with one half of each batch each, with one program.
func TestAllReduce(t *testing.T) {
	set, test := blobs(t, 320, 1), blobs(t, 90, 2)
	alone := classifier()
	o := train.FitOptions{Epochs: 4, Optimizer: train.NewAdam(0.03), Seed: 1, Validation: test.Batch(45), ClipNorm: 2, KeepBest: true}
	want, err := train.Fit(t.Context(), alone, set.Batch(20), o)
	if err != nil {
		t.Fatal(err)
	}
	models := [2]*nn.Model{classifier(), classifier()}
	histories, errs := fitTogether(t, models, func(task int) (train.Dataset, train.FitOptions) {
		o := o
		o.Validation = test.Shard(2, task).Batch(15)
		if task == 1 {
			o.Seed = 99 // the chief's initial weights count
		}
		return set.Shard(2, task).Batch(10), o
	})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for task, h := range histories {
		for i, e := range h.Epochs {
			for name, v := range want.Epochs[i].Values {
				if math.Abs(e.Values[name]-v) > 1e-4 {
					t.Errorf("worker %d, epoch %d: %s is %v, want %v", task, e.Epoch, name, e.Values[name], v)
				}
			}
			if e.Step != want.Epochs[i].Step {
				t.Errorf("worker %d, epoch %d: step %d, want %d", task, e.Epoch, e.Step, want.Epochs[i].Step)
			}
		}
		for name, w := range alone.Weights() {
			got := models[task].Weights()[name]
			for i, v := range tensor.Values[float32](&w) {
				if math.Abs(float64(tensor.Values[float32](&got)[i]-v)) > 1e-4 {
					t.Fatalf("worker %d: %s differs from the model that was trained alone", task, name)
				}
			}
		}
	}
}

// TestAllReduceResume trains on data of different sizes, twice, with checkpoints: an epoch ends
// with the smaller part, the moving averages agree, and the second call continues.
func TestAllReduceResume(t *testing.T) {
	dir := t.TempDir()
	for _, epochs := range []int{2, 5} {
		models := [2]*nn.Model{normalized(), normalized()}
		histories, errs := fitTogether(t, models, func(task int) (train.Dataset, train.FitOptions) {
			o := train.FitOptions{Epochs: epochs, Optimizer: train.NewAdam(0.03)}
			if task == 0 {
				o.Dir = dir
			}
			return blobs(t, 100+60*task, uint64(task)+1).Batch(10), o
		})
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		last := histories[0].Epochs[len(histories[0].Epochs)-1]
		if len(histories[0].Epochs) != epochs || last.Step != int64(10*epochs) {
			t.Errorf("after %d epochs: epoch %d, step %d, want 10 steps an epoch", epochs, last.Epoch, last.Step)
		}
		for name, w := range models[0].Weights() {
			other := models[1].Weights()[name]
			for i, v := range tensor.Values[float32](&w) {
				if tensor.Values[float32](&other)[i] != v {
					t.Fatalf("%s differs between the workers", name)
				}
			}
		}
	}
}

// TestAllReduceErrors gives the workers options that do not fit together.
func TestAllReduceErrors(t *testing.T) {
	_, errs := fitTogether(t, [2]*nn.Model{classifier(), classifier()}, func(task int) (train.Dataset, train.FitOptions) {
		return blobs(t, 20, 1).Batch(10), train.FitOptions{Epochs: 1 + task}
	})
	for task, err := range errs {
		if status.CodeOf(err) != status.InvalidArgument && !errors.Is(err, context.Canceled) {
			t.Errorf("worker %d: got %v, want InvalidArgument", task, err)
		}
	}
	if text := errors.Join(errs[:]...).Error(); !strings.Contains(text, "Epochs is") {
		t.Errorf("got %q, want the option", text)
	}
	_, err := train.Fit(t.Context(), classifier(), blobs(t, 20, 1).Batch(10), train.FitOptions{
		Cluster: &train.FitCluster{AllReduce: true, Sync: true},
	})
	if status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v, want InvalidArgument", err)
	}
}
