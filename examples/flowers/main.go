// Command flowers trains a classifier on the rows of a CSV file, saves it, loads it, and predicts.
//
//	go run ./examples/flowers
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/train"
)

func main() {
	if err := run(context.Background(), "examples/flowers/flowers.csv", "/tmp/flowers", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, dir string, out io.Writer) error {
	table, err := data.ReadCSV(file, data.CSV{Label: "kind"})
	if err != nil {
		return err
	}
	training, test := table.Dataset().Split(0.8, 1)
	mean, variance, err := training.Moments(ctx, 0)
	if err != nil {
		return err
	}
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Normalization{Mean: mean, Variance: variance},
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: len(table.Classes), Activation: nn.Softmax},
		},
		Loss:    nn.SparseCategoricalCrossentropy{},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	history, err := train.Fit(ctx, m, training.Shuffle(1000, 1).Batch(16), train.FitOptions{
		Epochs: 30, Optimizer: train.NewAdam(0.01), Seed: 1, Validation: test.Batch(16), StopAfter: 5, KeepBest: true, Progress: out,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "accuracy on the test data: %.2f\n", history.Best()["val_accuracy"])
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := m.Save(ctx, filepath.Join(dir, "1")); err != nil {
		return err
	}
	model, err := serve.Load(ctx, "local", filepath.Join(dir, "1"))
	if err != nil {
		return err
	}
	defer model.Close()
	predict, err := model.Signature("serving_default")
	if err != nil {
		return err
	}
	result, err := predict.Run(ctx, map[string]any{"inputs": [][]float32{{6.5, 3.1, 5.4, 2.1}}})
	if err != nil {
		return err
	}
	for i, p := range result["outputs"].([][]float32)[0] {
		fmt.Fprintf(out, "%s %.2f\n", table.Classes[i], p)
	}
	return nil
}
