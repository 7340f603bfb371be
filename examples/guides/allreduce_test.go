package guides

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/train"
)

// fitAgain trains until no worker is lost.
func fitAgain(ctx context.Context, model train.Model, set train.Dataset, options train.FitOptions) (*train.History, error) {
	for {
		history, err := train.Fit(ctx, model, set, options)
		if code := status.CodeOf(err); code != status.Unavailable && code != status.Aborted {
			return history, err
		}
		slog.Warn("a worker was lost; starting again", "error", err)
	}
}

// TestFitAgain trains on two workers. One reports the loss of a task in the second epoch.
func TestFitAgain(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	var histories [2]*train.History
	var errs [2]error
	var running sync.WaitGroup
	dir, lost := t.TempDir(), false
	for task := range 2 {
		set, err := data.FromSlices([][]float32{{0}, {1}, {2}, {3}}, []float32{1, 3, 5, 7})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			model := &nn.Model{Network: nn.Sequential{&nn.Dense{Units: 1}}, Loss: nn.MeanSquaredError{}}
			options := train.FitOptions{
				Epochs: 4, Cluster: &train.FitCluster{Spec: cl.Spec(), Task: task, AllReduce: true},
				OnEpoch: func(e train.Epoch) error {
					if task == 1 && e.Epoch == 2 && !lost {
						lost = true
						return status.Unavailablef("the task is gone")
					}
					return nil
				},
			}
			if task == 0 {
				options.Dir = dir
			}
			histories[task], errs[task] = fitAgain(t.Context(), model, set.Batch(2), options)
		})
	}
	running.Wait()
	for task, h := range histories {
		if errs[task] != nil {
			t.Fatal(errs[task])
		}
		if last := h.Epochs[len(h.Epochs)-1]; last.Epoch != 4 || last.Step != 8 {
			t.Errorf("worker %d ended with epoch %d, step %d", task, last.Epoch, last.Step)
		}
	}
	if !lost || len(histories[1].Epochs) > 3 {
		t.Errorf("worker 1 has trained %d epochs after the loss", len(histories[1].Epochs))
	}
}
