package main

import (
	"context"
	"math/rand/v2"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/train"
)

// Sizes of the table.
const (
	places, jobs = 12, 15
	crosses      = places * jobs
)

// wideDeep adds a linear model of crossed categories to a network of numbers and embedded
// categories (Cheng et al., 2016). Inputs are the place, the job, and three numbers.
type wideDeep struct {
	wide, place, job nn.Layer
	deep             nn.Sequential
}

func newWideDeep() *wideDeep {
	return &wideDeep{
		wide:  &nn.Embedding{InputDim: crosses, OutputDim: 1, Init: train.Zeros},
		place: &nn.Embedding{InputDim: places, OutputDim: 4},
		job:   &nn.Embedding{InputDim: jobs, OutputDim: 4},
		deep:  nn.Sequential{&nn.Dense{Units: 32, Activation: nn.ReLU}, &nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: 1}},
	}
}

// Forward implements [nn.Network].
func (n *wideDeep) Forward(c *nn.Context, in []op.Output) op.Output {
	s := c.Scope
	place, job, numbers := in[0], in[1], in[2]
	cross := op.AddV2(s, op.Mul(s, place, op.Const(s, int32(jobs))), job)
	features := op.ConcatV2(s, []op.Output{n.place.Apply(c, place), n.job.Apply(c, job), numbers}, op.Const(s, int32(1)))
	logits := op.AddV2(s, n.wide.Apply(c, cross), n.deep.Apply(c, features))
	return op.Sigmoid(s, logits)
}

// fitWideDeep trains on rows whose label depends on a curve of the numbers and on pairs of place
// and job.
func fitWideDeep(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	training, err := rows(size, 1)
	if err != nil {
		return nil, err
	}
	test, err := rows(2000, 2)
	if err != nil {
		return nil, err
	}
	m := &nn.Model{Network: newWideDeep(), Loss: nn.BinaryCrossentropy{}, Metrics: []train.Metric{metrics.AUC{}, metrics.BinaryAccuracy{}}}
	o.Optimizer, o.Validation = train.NewAdam(0.01), test.Batch(500)
	return train.Fit(ctx, m, training.Shuffle(size, 1).Batch(64), o)
}

func rows(n int, seed uint64) (*data.Dataset, error) {
	fixed := rand.New(rand.NewPCG(9, 9))
	var likes [crosses]float64
	for i := range likes {
		likes[i] = 2 * fixed.NormFloat64()
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	place, job, numbers, labels := make([]int32, n), make([]int32, n), make([][]float32, n), make([]float32, n)
	for i := range n {
		place[i], job[i] = int32(rng.IntN(places)), int32(rng.IntN(jobs))
		a, b, c := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		numbers[i] = []float32{float32(a), float32(b), float32(c)}
		if likes[place[i]*jobs+job[i]]+2*a*b+c+0.3*rng.NormFloat64() > 0 {
			labels[i] = 1
		}
	}
	return data.FromSlices(place, job, numbers, labels)
}
