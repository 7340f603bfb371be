package train_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// sameWeights fails unless two models have equal weights.
func sameWeights(t *testing.T, got, want *nn.Model) {
	t.Helper()
	for name, w := range want.Weights() {
		g := got.Weights()[name]
		for i, v := range tensor.Values[float32](&w) {
			if tensor.Values[float32](&g)[i] != v {
				t.Fatalf("%s differs: %v, want %v", name, tensor.Values[float32](&g), tensor.Values[float32](&w))
			}
		}
	}
}

// TestDataOnWorker trains with each way of ordering rows, in the program and on the task of the
// session, and wants equal weights, losses and metrics.
func TestDataOnWorker(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	all := blobs(t, 103, 1)
	first, second := all.Split(0.7, 3)
	for name, set := range map[string]*data.Dataset{
		"in order":   all.Batch(20),
		"shuffled":   all.Cache().Shuffle(103, 5).Batch(16).Prefetch(2),
		"window":     all.Shuffle(10, 5).BatchDropRemainder(16),
		"part":       first.Shuffle(200, 6).Skip(3).Take(50).Batch(8),
		"other part": second.Shard(2, 1).Batch(4),
		"batches":    all.Batch(10).Shuffle(4, 9).Take(7),
	} {
		t.Run(name, func(t *testing.T) {
			o := train.FitOptions{Epochs: 3, Optimizer: train.NewAdam(0.03), Seed: 1, Validation: blobs(t, 40, 2).Batch(20), Target: cl.Target("worker", 0)}
			fed, read := classifier(), classifier()
			want, err := train.Fit(t.Context(), fed, set, o)
			if err != nil {
				t.Fatal(err)
			}
			o.DataOnWorker = true
			got, err := train.Fit(t.Context(), read, set, o)
			if err != nil {
				t.Fatal(err)
			}
			sameWeights(t, read, fed)
			for i, e := range want.Epochs {
				if got.Epochs[i].Step != e.Step || got.Epochs[i].Values["loss"] != e.Values["loss"] ||
					got.Epochs[i].Values["val_accuracy"] != e.Values["val_accuracy"] {
					t.Errorf("epoch %d: got %+v, want %+v", i+1, got.Epochs[i], e)
				}
			}
		})
	}
}

// TestDataOnWorkers gives each worker of an all-reduce parts of different sizes.
func TestDataOnWorkers(t *testing.T) {
	var models [2][2]*nn.Model
	for i, onWorker := range []bool{false, true} {
		models[i] = [2]*nn.Model{classifier(), classifier()}
		histories, errs := fitTogether(t, models[i], func(task int) (train.Dataset, train.FitOptions) {
			return blobs(t, 40+30*task, uint64(task)+1).Shuffle(70, 4).Batch(10), train.FitOptions{
				Epochs: 3, Optimizer: train.NewAdam(0.03), Seed: 1, DataOnWorker: onWorker,
			}
		})
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		if last := histories[0].Epochs[2]; last.Step != 12 {
			t.Errorf("on worker %v: step %d, want 12", onWorker, last.Step)
		}
	}
	sameWeights(t, models[1][0], models[0][0])
	sameWeights(t, models[1][1], models[0][1])
}

// TestDataOnWorkerErrors passes data that a worker cannot read.
func TestDataOnWorkerErrors(t *testing.T) {
	set := blobs(t, 20, 1)
	mapped := set.Map(1, nil, func(e data.Element) (data.Element, error) { return e, nil })
	for name, tt := range map[string]struct {
		set  *data.Dataset
		code status.Code
		want string
	}{
		"function":   {mapped.Batch(4), status.Unimplemented, "its elements come from Map"},
		"file":       {data.TextLines("x").Batch(4), status.Unimplemented, "from a file or a function of the program"},
		"one by one": {set, status.FailedPrecondition, "call Batch"},
		"two sizes":  {set.Batch(8).Shuffle(3, 1), status.Unimplemented, "batches of one size"},
		"no batches": {set.BatchDropRemainder(50), status.InvalidArgument, "has no batches"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) { // the small batch is the last one for some
				use := tt.set
				if name == "two sizes" {
					use = set.Batch(8).Shuffle(3, seed)
				}
				_, err := train.Fit(t.Context(), classifier(), use, train.FitOptions{DataOnWorker: true})
				if err == nil && name == "two sizes" {
					continue
				}
				if status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "_test.go:") {
					t.Errorf("got %v, want %v: %q", err, tt.code, tt.want)
				}
				return
			}
			t.Error("no error")
		})
	}
}
