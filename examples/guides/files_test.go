package guides

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/train"
)

// trainFromFiles trains from files of the worker, whose lines have two numbers and a class.
func trainFromFiles(ctx context.Context, target string, files ...string) (*train.History, error) {
	points := data.TextLines(files...).MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
		number, class := op.Const(s, []float32{0}), op.Const(s, []int32{0})
		fields := op.DecodeCSV(s, line[0], []op.Output{number, number, class})
		return []op.Output{op.Pack(s, fields[:2]), fields[2]}
	})
	m := &nn.Model{
		Network: nn.Sequential{&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: 2}},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	return train.Fit(ctx, m, points.Cache().Shuffle(10_000, 1).Batch(32), train.FitOptions{
		Epochs: 5, Optimizer: train.NewAdam(0.02), Seed: 1, Target: target, DataOnWorker: true,
	})
}

// TestTrainFromFiles runs the program with two files and a worker.
func TestTrainFromFiles(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	random := rand.New(rand.NewPCG(1, 1))
	var files []string
	for i := range 2 {
		var lines strings.Builder
		for range 300 {
			x, y, class := random.Float32(), random.Float32(), 0
			if x > y {
				class = 1
			}
			fmt.Fprintf(&lines, "%v,%v,%d\n", x, y, class)
		}
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint(i, ".csv")))
		if err := os.WriteFile(files[i], []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	history, err := trainFromFiles(t.Context(), cl.Target("worker", 0), files...)
	if err != nil {
		t.Fatal(err)
	}
	if accuracy := history.Last()["accuracy"]; accuracy < 0.9 {
		t.Errorf("the accuracy is %v", accuracy)
	}
}
