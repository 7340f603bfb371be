package guides

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/train"
)

func trainFlowers(ctx context.Context, path, dir string) error {
	table, err := data.ReadCSV(path, data.CSV{
		Label: "species", Features: []string{"sepal length", "sepal width", "petal length"},
	})
	if err != nil {
		return err
	}
	training, validation := table.Dataset().Split(0.8, 1)
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: len(table.Classes), Activation: nn.Softmax},
		},
		Loss:    nn.SparseCategoricalCrossentropy{},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	history, err := train.Fit(ctx, m, training.Shuffle(150, 1).Batch(16), train.FitOptions{
		Epochs: 40, Optimizer: train.NewAdam(0.02), Seed: 1,
		Validation: validation.Batch(30), StopAfter: 8, KeepBest: true,
	})
	if err != nil {
		return err
	}
	fmt.Println("accuracy over 0.9:", history.Best()["val_accuracy"] > 0.9)
	if err := m.Save(ctx, dir); err != nil {
		return err
	}
	return table.Options.Save(filepath.Join(dir, "columns.json"))
}

func predictFlowers(ctx context.Context, dir string) error {
	model, err := serve.Load(ctx, "local", dir)
	if err != nil {
		return err
	}
	defer model.Close()
	sig, err := model.Signature("serving_default")
	if err != nil {
		return err
	}
	columns, err := data.LoadCSV(filepath.Join(dir, "columns.json"))
	if err != nil {
		return err
	}
	row, err := columns.Row(map[string]string{"sepal length": "6.6", "sepal width": "3", "petal length": "5.6"})
	if err != nil {
		return err
	}
	out, err := sig.Run(ctx, map[string]any{"inputs": [][]float32{row}})
	if err != nil {
		return err
	}
	probabilities := out["outputs"].([][]float32)[0]
	best := slices.Index(probabilities, slices.Max(probabilities))
	fmt.Println(columns.Classes[best])
	return nil
}

func flowers(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "flowers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	dir := filepath.Join(folder, "1")
	if err := trainFlowers(ctx, "testdata/flowers.csv", dir); err != nil {
		return err
	}
	return predictFlowers(ctx, dir)
}

func Example_flowers() {
	show(flowers)
	// Output:
	// accuracy over 0.9: true
	// virginica
}
