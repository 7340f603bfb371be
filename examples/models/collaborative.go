package main

import (
	"context"
	"math/rand/v2"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/train"
)

// Sizes of the tables.
const (
	users, items = 400, 300
	factors      = 4
)

// collaborative predicts a rating by the product of a vector for the user and one for the item, and
// a bias for each. The rows of the vectors are split over the parameter servers.
type collaborative struct{ user, item, userBias, itemBias nn.Layer }

// Forward implements [nn.Network].
func (n *collaborative) Forward(c *nn.Context, in []op.Output) op.Output {
	s := c.Scope
	last := op.Const(s, []int32{1})
	taste := op.Sum(s, op.Mul(s, n.user.Apply(c, in[0]), n.item.Apply(c, in[1])), last, op.SumKeepDims(true))
	return op.AddV2(s, taste, op.AddV2(s, n.userBias.Apply(c, in[0]), n.itemBias.Apply(c, in[1])))
}

// fitCollaborative starts a cluster of two parameter servers and a worker in this process, and
// trains on it. The standard deviation of the ratings is about 1.2, that of their noise 0.2.
func fitCollaborative(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	cluster, err := server.StartCluster(map[string]int{"ps": 2, "worker": 1}, 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cluster.Shutdown(context.WithoutCancel(ctx)) }()
	training, err := ratings(size, 1)
	if err != nil {
		return nil, err
	}
	test, err := ratings(2000, 2)
	if err != nil {
		return nil, err
	}
	table := func(rows, width int) nn.Layer {
		return &nn.Embedding{InputDim: rows, OutputDim: width, Parts: 2, Init: train.RandomNormal(0, 0.2)}
	}
	m := &nn.Model{
		Network: &collaborative{table(users, factors), table(items, factors), table(users, 1), table(items, 1)},
		Loss:    nn.MeanSquaredError{}, Metrics: []train.Metric{metrics.RootMeanSquaredError{}},
	}
	o.Optimizer, o.Validation = train.NewAdam(0.02), test.Batch(500)
	o.Cluster = &train.FitCluster{Spec: cluster.Spec()}
	return train.Fit(ctx, m, training.Shuffle(size, 1).Batch(128), o)
}

func ratings(n int, seed uint64) (*data.Dataset, error) {
	fixed := rand.New(rand.NewPCG(9, 9))
	vectors := make([][factors + 1]float64, users+items)
	for i := range vectors {
		for j := range vectors[i] {
			vectors[i][j] = 0.7 * fixed.NormFloat64()
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	user, item, labels := make([]int32, n), make([]int32, n), make([]float32, n)
	for i := range n {
		user[i], item[i] = int32(rng.IntN(users)), int32(rng.IntN(items))
		a, b := vectors[user[i]], vectors[users+item[i]]
		rating := a[factors] + b[factors] + 0.2*rng.NormFloat64()
		for j := range factors {
			rating += a[j] * b[j]
		}
		labels[i] = float32(rating)
	}
	return data.FromSlices(user, item, labels)
}
