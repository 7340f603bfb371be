package main

import (
	"context"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/examples/digits"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// fitCNN trains two convolutions, each with pooling, on images of 28 x 28 pixels.
func fitCNN(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	images := digits.New(1)
	training, err := patterns(images, size)
	if err != nil {
		return nil, err
	}
	test, err := patterns(images, 500)
	if err != nil {
		return nil, err
	}
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Conv2D{Filters: 16, Kernel: []int{3}, Activation: nn.ReLU}, &nn.MaxPooling2D{},
			&nn.Conv2D{Filters: 32, Kernel: []int{3}, Activation: nn.ReLU}, &nn.MaxPooling2D{},
			&nn.Flatten{}, &nn.Dropout{Rate: 0.2}, &nn.Dense{Units: digits.Classes},
		},
		Loss:    nn.CategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.CategoricalAccuracy{}},
	}
	o.Validation = test.Batch(100)
	return train.Fit(ctx, m, training.Shuffle(size, 1).Batch(32), o)
}

// patterns returns n images [28, 28, 1] with one-hot labels.
func patterns(images *digits.Batches, n int) (*data.Dataset, error) {
	pixels, labels := images.Next(n)
	x, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Side, digits.Side, 1}, pixels)
	if err != nil {
		return nil, err
	}
	y, err := tensor.FromSlice(tensor.Shape{int64(n), digits.Classes}, labels)
	if err != nil {
		return nil, err
	}
	return data.FromSlices(x, y)
}
