package main

import (
	"context"
	"math/rand/v2"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Sizes of the sequences and of the network.
const (
	tokens, steps   = 10, 10
	features, heads = 32, 4
)

// positions adds a learned vector for each step of a sequence. It is a layer with a variable of its
// own.
type positions struct{}

// Apply implements [nn.Layer].
func (l *positions) Apply(c *nn.Context, x op.Output) op.Output {
	c = c.Layer(l, "positions")
	table := c.Weight(nn.Weight{
		Name: "table", Shape: tensor.Shape{steps, features}, Init: train.RandomNormal(0, 0.3),
	})
	return op.AddV2(c.Scope, x, table)
}

// encoder is a layer of a Transformer (Vaswani et al., 2017), with normalizations before its parts.
type encoder struct{ attention, forward nn.Sequential }

func newEncoder() *encoder {
	return &encoder{
		attention: nn.Sequential{&nn.LayerNormalization{}, &nn.MultiHeadAttention{NumHeads: heads, KeyDim: features / heads}},
		forward: nn.Sequential{
			&nn.LayerNormalization{}, &nn.Dense{Units: 2 * features, Activation: nn.GELU}, &nn.Dense{Units: features},
		},
	}
}

// Apply implements [nn.Layer].
func (l *encoder) Apply(c *nn.Context, x op.Output) op.Output {
	x = op.AddV2(c.Scope, x, l.attention.Apply(c, x))
	return op.AddV2(c.Scope, x, l.forward.Apply(c, x))
}

// fitTransformer trains two encoders to reverse sequences of ten tokens.
func fitTransformer(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	training, err := reversals(size, 1)
	if err != nil {
		return nil, err
	}
	test, err := reversals(200, 2)
	if err != nil {
		return nil, err
	}
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Embedding{InputDim: tokens, OutputDim: features, Init: train.RandomNormal(0, 0.3)}, &positions{},
			newEncoder(), newEncoder(), &nn.LayerNormalization{}, &nn.Dense{Units: tokens},
		},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	batches := training.Shuffle(size, 1).Batch(32)
	total := float64(o.Epochs * batches.NumBatches())
	o.Schedule, o.ClipNorm, o.Validation = train.CosineDecay{Rate: 0.004, Steps: total}, 1, test.Batch(100)
	return train.Fit(ctx, m, batches, o)
}

func reversals(n int, seed uint64) (*data.Dataset, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	inputs, labels := make([][]int32, n), make([][]int32, n)
	for i := range n {
		inputs[i], labels[i] = make([]int32, steps), make([]int32, steps)
		for j := range steps {
			inputs[i][j] = int32(rng.IntN(tokens))
			labels[i][steps-1-j] = inputs[i][j]
		}
	}
	return data.FromSlices(inputs, labels)
}
