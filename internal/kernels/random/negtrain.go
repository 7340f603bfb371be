package random

import (
	"context"
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name:  "NegTrain",
		Doc:   "Trains word embeddings by negative sampling, in place. Words are drawn by their frequency to the power of 0.75. Deprecated.",
		In:    []string{"w_in: Ref(float32)", "w_out: Ref(float32)", "examples: int32", "labels: int32", "lr: float32"},
		Attrs: []string{"vocab_count: list(int)", "num_negative_samples: int"}, Stateful: true, Shape: opdef.UnknownShape,
	}, newNegTrain)
}

// negTrain is a kernel with a random seed.
type negTrain struct {
	samples, words int
	table          *aliasTable
	source         *philox.Source
}

func newNegTrain(c *kernel.Construction) (kernel.Kernel, error) {
	counts := c.Attrs.Ints("vocab_count")
	k := &negTrain{samples: c.Attrs.Int("num_negative_samples"), words: len(counts), source: philox.NewSource(0, 0)}
	if k.words == 0 || k.samples < 0 {
		return nil, status.InvalidArgumentf("vocab_count must have elements and num_negative_samples must not be negative, got %d and %d", k.words, k.samples)
	}
	weights := membudget.Make[float32](k.words)
	for i, n := range counts {
		weights[i] = float32(math.Pow(float64(n), 0.75))
	}
	k.table = newAliasTable(weights)
	return k, nil
}

// Compute implements kernel.Kernel.
func (k *negTrain) Compute(ctx *kernel.Context) error {
	examples, labels, rate := ctx.Input(2), ctx.Input(3), ctx.Input(4)
	switch {
	case examples.Rank() != 1:
		return status.InvalidArgumentf("Must be a vector")
	case !examples.Shape().Equal(labels.Shape()):
		return status.InvalidArgumentf("examples.shape == labels.shape")
	case rate.Rank() != 0:
		return status.InvalidArgumentf("Must be a scalar")
	}
	values, unlock := kernel.LockAll(ctx.InputRef(0), ctx.InputRef(1))
	defer unlock()
	for i, name := range []string{"w_in", "w_out"} {
		if !values[i].Initialized() {
			return status.FailedPreconditionf("Attempting to use uninitialized value %s", name)
		}
	}
	switch in, out := values[0].Shape(), values[1].Shape(); {
	case len(in) != 2:
		return status.InvalidArgumentf("Must be a matrix")
	case !in.Equal(out):
		return status.InvalidArgumentf("w_in.shape == w_out.shape")
	case int(in[0]) != k.words:
		return status.InvalidArgumentf("vocab_size mismatches: %d vs. %d", in[0], k.words)
	}
	for _, list := range [][]int32{tensor.Values[int32](examples), tensor.Values[int32](labels)} {
		for _, word := range list {
			if word < 0 || int(word) >= k.words {
				return status.InvalidArgumentf("word %d is not in [0, %d)", word, k.words)
			}
		}
	}
	for i := range values {
		var err error
		if values[i], err = ctx.Writable(values[i]); err != nil {
			return err
		}
	}
	return k.train(ctx.Context(), values[0], values[1], tensor.Values[int32](examples), tensor.Values[int32](labels), tensor.Value[float32](rate))
}

// train trains until it is done or ctx ends.
func (k *negTrain) train(ctx context.Context, in, out *tensor.Tensor, examples, labels []int32, rate float32) error {
	dims := in.Dim(1)
	row := func(t *tensor.Tensor, i int32) []float32 { return tensor.Values[float32](t)[int(i)*dims:][:dims] }
	// two words for each sample, and more for those that a draw skips
	random := philox.NewWords(k.source.TakeWords(len(examples) * k.samples * 8))
	sum := membudget.Make[float32](dims)
	// step adds the gradient of the probability that w is a neighbor of v, or is none
	step := func(v, w []float32, neighbor bool) {
		var dot float32
		for i, x := range v {
			dot += x * w[i]
		}
		g := rate / (float32(math.Exp(float64(dot))) + 1)
		if !neighbor {
			g = -rate / (float32(math.Exp(float64(-dot))) + 1)
		}
		for i, x := range v {
			sum[i] += w[i] * g
			w[i] += x * g
		}
	}
	for i, example := range examples {
		v := row(in, example)
		clear(sum)
		step(v, row(out, labels[i]), true)
		for n := range k.samples {
			const checkEvery = 1 << 10
			if n%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if word := int32(k.table.draw(random)); word != labels[i] { //nolint:gosec // an index
				step(v, row(out, word), false)
			}
		}
		for j, g := range sum {
			v[j] += g
		}
	}
	return nil
}
