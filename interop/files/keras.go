package main

import (
	"context"
	"path/filepath"

	"github.com/weft-ml/weft/nn"
)

// exportKeras loads the model that interop/keras/served.py has saved with Keras, and saves it as a
// SavedModel.
func exportKeras(ctx context.Context, dir string, _ contents) error {
	m := &nn.Model{Network: nn.Sequential{
		&nn.Conv2D{Filters: 4, Kernel: []int{3}, Activation: nn.ReLU}, &nn.BatchNormalization{}, &nn.Flatten{},
		&nn.Dense{Units: 3, Activation: nn.Softmax},
	}}
	if err := m.LoadKeras(filepath.Join(dir, "model.keras"), nn.Input{Shape: []int64{5, 5, 1}}); err != nil {
		return err
	}
	return m.Save(ctx, filepath.Join(dir, "saved"))
}
