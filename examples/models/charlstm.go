package main

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/metrics"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/train"
)

// alphabet are the characters of the text.
const alphabet = " .abcdefghijklmnopqrstuvwxyz"

// sentences returns n sentences of a small grammar.
func sentences(n int, rng *rand.Rand) string {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	var b strings.Builder
	for range n {
		b.WriteString("the " + pick("small", "old", "quick") + " " + pick("weaver", "sailor", "farmer") + " ")
		b.WriteString(pick("mends", "sells", "paints") + " a " + pick("net", "boat", "fence") + ". ")
	}
	return b.String()
}

// fitCharLSTM trains a network that predicts, at each character, the next one. Of the characters in
// a sentence about four in five are certain.
func fitCharLSTM(ctx context.Context, size int, o train.FitOptions) (*train.History, error) {
	training, err := characters(size, 1)
	if err != nil {
		return nil, err
	}
	test, err := characters(100, 2)
	if err != nil {
		return nil, err
	}
	m := &nn.Model{
		Network: nn.Sequential{
			&nn.Embedding{InputDim: len(alphabet), OutputDim: 16}, &nn.LSTM{Units: 64, ReturnSequences: true}, &nn.Dense{Units: len(alphabet)},
		},
		Loss:    nn.SparseCategoricalCrossentropy{FromLogits: true},
		Metrics: []train.Metric{metrics.SparseCategoricalAccuracy{}},
	}
	o.Optimizer, o.ClipNorm, o.Validation = train.NewAdam(0.01), 1, test.Batch(50)
	return train.Fit(ctx, m, training.Shuffle(size, 1).Batch(20), o)
}

// characters returns n sequences of 40 characters, and the characters that follow each of them.
func characters(n int, seed uint64) (*data.Dataset, error) {
	const length = 40
	rng := rand.New(rand.NewPCG(seed, 0))
	text := sentences(2*n+10, rng)
	inputs, labels := make([][]int32, n), make([][]int32, n)
	for i := range n {
		at := rng.IntN(len(text) - length - 1)
		for _, c := range text[at : at+length] {
			inputs[i] = append(inputs[i], int32(strings.IndexRune(alphabet, c)))
		}
		labels[i] = append(labels[i], inputs[i][1:]...)
		labels[i] = append(labels[i], int32(strings.IndexByte(alphabet, text[at+length])))
	}
	return data.FromSlices(inputs, labels)
}
