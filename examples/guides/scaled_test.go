package guides

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/train"
)

// scaled returns a model that normalizes its features.
func scaled(ctx context.Context, training *data.Dataset, classes int) (*nn.Model, error) {
	mean, variance, err := training.Moments(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &nn.Model{
		Network: nn.Sequential{
			&nn.Normalization{Mean: mean, Variance: variance},
			&nn.Dense{Units: 16, Activation: nn.ReLU},
			&nn.Dense{Units: classes, Activation: nn.Softmax},
		},
		Loss: nn.SparseCategoricalCrossentropy{},
	}, nil
}

// Train on a table whose columns are of very different sizes. One has texts.
func Example_scaled() {
	show(func(ctx context.Context) error {
		var table strings.Builder
		table.WriteString("mass,sex,length,kind\n")
		for i := range 120 {
			kind := []string{"small", "large"}[i%2]
			fmt.Fprintf(&table, "%d,%s,%d.5,%s\n", 3000+2000*(i%2)+7*i, []string{"f", "m"}[i/2%2], 30+10*(i%2), kind)
		}
		path := filepath.Join(os.TempDir(), "weft-animals.csv")
		defer os.Remove(path)
		if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
			return err
		}
		animals, err := data.ReadCSV(path, data.CSV{Label: "kind", OneHot: []string{"sex"}})
		if err != nil {
			return err
		}
		set := animals.Dataset()
		model, err := scaled(ctx, set, len(animals.Classes))
		if err != nil {
			return err
		}
		history, err := train.Fit(ctx, model, set.Shuffle(120, 1).Batch(12), train.FitOptions{
			Epochs: 20, Optimizer: train.NewAdam(0.02), Seed: 1,
		})
		if err != nil {
			return err
		}
		fmt.Println(animals.Columns, history.Last()["loss"] < 0.1)
		return nil
	})
	// Output: [mass sex=f sex=m length] true
}
