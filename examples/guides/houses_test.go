package guides

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/train"
)

func trainHouses(ctx context.Context, path string) (*nn.Model, *data.Table, error) {
	table, err := data.ReadCSV(path, data.CSV{
		Label: "price", Ignore: []string{"id"}, OneHot: []string{"district"}, Missing: data.MissingMean,
	})
	if err != nil {
		return nil, nil, err
	}
	training, validation := table.Dataset().Split(0.8, 1)
	mean, variance, err := training.Moments(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	price, spread, err := training.Moments(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Normalization{Mean: mean, Variance: variance},
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: 1},
			&nn.Rescaling{Scale: math.Sqrt(float64(spread[0])), Offset: float64(price[0])},
		},
		Loss:    nn.MeanSquaredError{},
		Metrics: []train.Metric{metrics.MeanAbsoluteError{}},
	}
	history, err := train.Fit(ctx, m, training.Shuffle(2000, 1).Batch(32), train.FitOptions{
		Epochs: 30, Optimizer: train.NewAdam(0.01), Seed: 1,
		Validation: validation.Batch(100), StopAfter: 5, KeepBest: true,
	})
	if err != nil {
		return nil, nil, err
	}
	fmt.Println("error below 15000:", history.Best()["val_mean_absolute_error"] < 15000)
	return m, table, nil
}

func predictHouses(ctx context.Context, m *nn.Model, table *data.Table, path string) error {
	columns := table.Options
	columns.Unlabeled = true
	houses, err := data.ReadCSV(path, columns)
	if err != nil {
		return err
	}
	prices, err := m.Predict(ctx, houses.Features)
	if err != nil {
		return err
	}
	fmt.Println(prices.Shape())
	return nil
}

func saveHouses(ctx context.Context, m *nn.Model, table *data.Table, dir string) error {
	return m.SaveTable(ctx, dir, table.Options)
}

// writeHouses writes a file of n houses, with or without prices.
func writeHouses(path string, n int, priced bool) error {
	rng := rand.New(rand.NewPCG(1, 0))
	var b strings.Builder
	b.WriteString("id,area,built,district")
	if priced {
		b.WriteString(",price")
	}
	factors := map[string]float64{"north": 1.1, "south": 0.9, "old town": 1.4}
	for i := range n {
		district := []string{"north", "south", "old town"}[rng.IntN(3)]
		area, built := 40+rng.Float64()*120, 1900+rng.IntN(120)
		fmt.Fprintf(&b, "\n%d,%.1f,", i, area)
		if rng.IntN(30) > 0 {
			fmt.Fprint(&b, built)
		}
		b.WriteString("," + district)
		if priced {
			fmt.Fprintf(&b, ",%.0f", 2400*area*factors[district]+600*float64(built-1950)+rng.NormFloat64()*8000)
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func houses(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "houses")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	priced, open := filepath.Join(folder, "houses.csv"), filepath.Join(folder, "new.csv")
	if err := writeHouses(priced, 2000, true); err != nil {
		return err
	}
	if err := writeHouses(open, 3, false); err != nil {
		return err
	}
	m, table, err := trainHouses(ctx, priced)
	if err != nil {
		return err
	}
	if err := saveHouses(ctx, m, table, filepath.Join(folder, "houses", "1")); err != nil {
		return err
	}
	return predictHouses(ctx, m, table, open)
}

func Example_houses() {
	show(houses)
	// Output:
	// error below 15000: true
	// [3,1]
}
