package main

import (
	"context"
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Words of texts: good and bad ones decide the label, the others do not.
var (
	goodWords  = strings.Fields("bright lovely superb warm clever fine graceful sound")
	badWords   = strings.Fields("dull broken bitter weak clumsy poor hollow stale")
	otherWords = strings.Fields("the a film book story play it was of in with and actor scene music end")
)

// vocabulary are the words, whose index is their number; 0 is padding.
var vocabulary = append(append(append([]string{""}, goodWords...), badWords...), otherWords...)

// fitText trains on texts of 5 to 20 words: the mean of the embeddings of the words decides.
func fitText(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Embedding{InputDim: len(vocabulary), OutputDim: 16, MaskZero: true}, &nn.GlobalAveragePooling1D{},
			&nn.Dense{Units: 16, Activation: nn.ReLU}, &nn.Dense{Units: 1},
		},
		Loss:    nn.BinaryCrossentropy{FromLogits: true},
		Metrics: []train.Metric{renamed{metrics.BinaryAccuracy{FromLogits: true}, "accuracy"}},
	}
	o.Optimizer, o.Validation = train.NewAdam(0.01), texts(300, 2).PaddedBatch(100)
	return train.Fit(ctx, m, texts(size, 1).Shuffle(size, 1).PaddedBatch(32), o)
}

// renamed is a metric with another name.
type renamed struct {
	train.Metric
	name string
}

// Name implements [train.Metric].
func (m renamed) Name() string { return m.name }

// texts returns n texts as the numbers of their words, with the label 1 if most of the words that
// count are good ones.
func texts(n int, seed uint64) *data.Dataset {
	spec := []data.Spec{
		{DType: tensor.Int32, Shape: tensor.MakePartial(-1)}, {DType: tensor.Float32, Shape: tensor.MakePartial()},
	}
	return data.New(spec, n, func(context.Context, int) iter.Seq2[data.Element, error] {
		return func(yield func(data.Element, error) bool) {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range n {
				words, score := make([]int32, 5+rng.IntN(16)), 0
				for i := range words {
					words[i] = int32(1 + rng.IntN(len(vocabulary)-1))
					switch {
					case int(words[i]) <= len(goodWords):
						score++
					case int(words[i]) <= len(goodWords)+len(badWords):
						score--
					}
				}
				label := float32(0)
				if score > 0 {
					label = 1
				}
				if !yield(data.Element{tensor.Vector(words...), tensor.Scalar(label)}, nil) {
					return
				}
			}
		}
	})
}
