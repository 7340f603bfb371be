package nn_test

import (
	"context"
	"fmt"
	"os"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/train"
)

// Learn the exclusive or of two bits.
func ExampleModel() {
	xor, err := data.FromSlices([][]float32{{0, 0}, {0, 1}, {1, 0}, {1, 1}}, []float32{0, 1, 1, 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &nn.Model{
		Network: nn.Sequential{&nn.Dense{Units: 8, Activation: nn.Tanh}, &nn.Dense{Units: 1, Activation: nn.Sigmoid}},
		Loss:    nn.BinaryCrossentropy{},
	}
	ctx := context.Background()
	if _, err := train.Fit(ctx, m, xor.Batch(4), train.FitOptions{Epochs: 300, Optimizer: train.NewAdam(0.05), Seed: 1}); err != nil {
		fmt.Println(err)
		return
	}
	y, err := m.Predict(ctx, [][]float32{{0, 1}, {1, 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range y.Go().([][]float32) {
		fmt.Printf("%.0f\n", p[0])
	}
	// Output:
	// 1
	// 0
}

// residual adds its input to the output of other layers.
type residual struct{ inner nn.Layer }

func (r *residual) Apply(c *nn.Context, x op.Output) op.Output {
	return op.AddV2(c.Scope, r.inner.Apply(c, x), x)
}

// A network may be a struct of layers with a method.
func ExampleModel_Summary() {
	m := &nn.Model{Network: nn.Sequential{
		&nn.Dense{Units: 16}, &residual{&nn.Dense{Units: 16, Activation: nn.ReLU}}, &nn.Dense{Units: 1},
	}}
	if err := m.Summary(os.Stdout, nn.Input{Shape: []int64{4}}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// layer    output   parameters
	// dense    [?, 16]  80
	// dense_1  [?, 16]  272
	// dense_2  [?, 1]   17
	// 369 parameters: 369 trained, 0 not
}
