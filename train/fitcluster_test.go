package train_test

import (
	"context"
	"sync"
	"testing"

	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/train"
)

// TestFitOnWorker trains and saves in the session of a worker.
func TestFitOnWorker(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	m := classifier()
	h, err := train.Fit(t.Context(), m, blobs(t, 200, 1).Batch(20), train.FitOptions{
		Epochs: 4, Optimizer: train.NewAdam(0.03), Seed: 1, Target: cl.Target("worker", 0), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.Last()["accuracy"] < 0.9 || m.Weights() == nil {
		t.Errorf("the accuracy is %v", h.Last()["accuracy"])
	}
}

// TestFitOnCluster trains with two workers and two parameter servers.
func TestFitOnCluster(t *testing.T) {
	for name, together := range map[string]bool{"async": false, "sync": true} {
		t.Run(name, func(t *testing.T) {
			cl, err := server.StartCluster(map[string]int{"ps": 2, "worker": 2}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cl.Shutdown(context.Background()) }()
			set, test := blobs(t, 320, 1), blobs(t, 90, 2).Batch(90)
			var histories [2]*train.History
			var errs [2]error
			var running sync.WaitGroup
			chief := classifier()
			for task := range 2 {
				running.Go(func() {
					m := chief
					if task > 0 {
						m = classifier()
					}
					histories[task], errs[task] = train.Fit(t.Context(), m, set.Shard(2, task).Batch(20), train.FitOptions{
						Epochs: 6, Optimizer: train.NewAdam(0.03), Seed: 1, Validation: test,
						Cluster: &train.FitCluster{Spec: cl.Spec(), Task: task, Sync: together},
					})
				})
			}
			running.Wait()
			if errs[0] != nil || errs[1] != nil {
				t.Fatal(errs)
			}
			if v := histories[0].Last()["val_accuracy"]; v < 0.9 {
				t.Errorf("the accuracy is %v", v)
			}
			// The chief contributes 48 gradients, the other worker at most as many; two make a step
			// if they train together.
			if steps := histories[0].Epochs[5].Step; together && (steps < 24 || steps > 48) {
				t.Errorf("the last step is %d, want 24 to 48", steps)
			}
			got, err := chief.Evaluate(t.Context(), test)
			if err != nil || got["accuracy"] < 0.9 {
				t.Errorf("the chief's model has %v, %v", got, err)
			}
		})
	}
}
