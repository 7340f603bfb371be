package main

import (
	"math"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// A model is a skip-gram model, which distinguishes the words near a word from others.
type model struct {
	inputs, labels op.Output // [batch] int64: words, and words near them
	loss           op.Output // scalar
	update, init   *graph.Node
	asked          op.Output // [n] int64: words
	nearest        op.Output // [n, shown+1] int32: the words with the nearest vectors
}

func newModel(s *op.Scope, c *config, words int) *model {
	m := &model{
		inputs: op.Placeholder(s.Named("inputs"), tensor.Int64, op.PlaceholderShape(tensor.MakePartial(int64(c.batch)))),
		labels: op.Placeholder(s.Named("labels"), tensor.Int64, op.PlaceholderShape(tensor.MakePartial(int64(c.batch)))),
		asked:  op.Placeholder(s.Named("asked"), tensor.Int64),
	}
	n, size := int64(words), int64(c.size)
	vectors := train.NewPartitioned(s, "embeddings", tensor.Shape{n, size}, tensor.Float32, train.RandomUniform(-1, 1), c.psTasks)
	spread := train.TruncatedNormal(0, 1/math.Sqrt(float64(size)))
	weights := train.NewPartitioned(s, "nce_weights", tensor.Shape{n, size}, tensor.Float32, spread, c.psTasks)
	biases := train.NewVariable(s, "nce_biases", tensor.Shape{n}, tensor.Float32, train.Zeros)

	m.loss = m.contrast(s, vectors.Lookup(s, m.inputs), weights, biases, c, n)
	m.update = train.Minimize(s, train.NewGradientDescent(c.rate), m.loss, nil)
	m.init = train.VariablesInitializer(s)
	m.addNearest(s, vectors)
	return m
}

// contrast adds the noise-contrastive loss (Gutmann and Hyvärinen, 2010). It is low if the model
// distinguishes a pair of the text from pairs of the same word with sampled words, considering the
// probability with which each word is sampled.
func (m *model) contrast(s *op.Scope, x op.Output, weights *train.Partitioned, biases *train.Variable, c *config, words int64) op.Output {
	column := op.Const(s, int32(1))
	sampled, expected, expectedSampled := op.LogUniformCandidateSampler(s, op.ExpandDims(s, m.labels, column), 1, int64(c.negative), true, words)

	trueLogits := op.Sum(s, op.Mul(s, x, weights.Lookup(s, m.labels)), op.Const(s, []int32{1}))
	trueLogits = op.AddV2(s, trueLogits, biases.Gather(s, m.labels))
	trueLogits = op.Sub(s, trueLogits, op.Log(s, op.Squeeze(s, expected)))

	logits := op.MatMul(s, x, weights.Lookup(s, sampled), op.MatMulTransposeB(true))
	logits = op.AddV2(s, logits, op.Sub(s, biases.Gather(s, sampled), op.Log(s, expectedSampled)))

	// The cross entropy of a logit is softplus(-logit) for a true pair and softplus(logit) for a
	// sampled one.
	right := op.Softplus(s, op.Neg(s, trueLogits))
	wrong := op.Sum(s, op.Softplus(s, logits), op.Const(s, []int32{1}))
	return op.Mean(s.Named("loss"), op.AddV2(s, right, wrong), op.Const(s, []int32{0}))
}

// addNearest adds the search for the words whose vectors have the smallest angles to those of given
// words.
func (m *model) addNearest(s *op.Scope, vectors *train.Partitioned) {
	all := vectors.Value(s)
	length := op.Sqrt(s, op.Sum(s, op.Square(s, all), op.Const(s, []int32{1}), op.SumKeepDims(true)))
	unit := op.RealDiv(s, all, length)
	some := op.GatherV2(s, unit, m.asked, op.Const(s, int32(0)))
	_, m.nearest = op.TopKV2(s, op.MatMul(s, some, unit, op.MatMulTransposeB(true)), op.Const(s, int32(shown+1)))
}
