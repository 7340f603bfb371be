package guides

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// prepared runs one step many times.
func prepared(ctx context.Context) error {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	y := op.Square(s, x)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	square, err := sess.Prepare(ctx, weft.Step{Feeds: []graph.Output{x}, Fetches: []graph.Output{y}})
	if err != nil {
		return err
	}
	defer square.Close()
	for i := range 3 {
		out, err := square.Run(ctx, tensor.Scalar(float32(i)))
		if err != nil {
			return err
		}
		fmt.Println(out[0].Go())
	}
	return nil
}

func Example_prepared() {
	show(prepared)
	// Output:
	// 0
	// 1
	// 4
}

// fast trains with all that makes training faster and does not change the batches.
func fast(ctx context.Context, set *data.Dataset, target string) (*train.History, error) {
	model := &nn.Model{
		Network:  nn.Sequential{&nn.Dense{Units: 64, Activation: nn.ReLU}, &nn.Dense{Units: 2}},
		Loss:     nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics:  []train.Metric{metrics.SparseCategoricalAccuracy{}},
		BFloat16: true,
	}
	batches := set.Cache().Shuffle(10_000, 1).Batch(256).Prefetch(4)
	return train.Fit(ctx, model, batches, train.FitOptions{Epochs: 20, Seed: 1, Target: target, DataOnWorker: true})
}

func Example_fast() {
	show(func(ctx context.Context) error {
		points, labels := make([][]float32, 2000), make([]int32, 2000)
		for i := range points {
			points[i] = []float32{float32(i%40)/20 - 1, float32(i%7)/3 - 1}
			if points[i][0] > points[i][1] {
				labels[i] = 1
			}
		}
		set, err := data.FromSlices(points, labels)
		if err != nil {
			return err
		}
		history, err := fast(ctx, set, "local")
		if err != nil {
			return err
		}
		fmt.Println(history.Last()["accuracy"] > 0.95)
		return nil
	})
	// Output: true
}
