package nn_test

import (
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/internal/test/recorded"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
)

// lossCase is what Keras computes: the losses, and the gradient of their mean.
type lossCase struct {
	Name                                  string
	Labels, Predictions, Losses, Gradient recorded.Array
}

var losses = map[string]nn.Loss{
	"mean squared error":             nn.MeanSquaredError{},
	"mean squared error column":      nn.MeanSquaredError{},
	"mean absolute error":            nn.MeanAbsoluteError{},
	"mean absolute percentage error": nn.MeanAbsolutePercentageError{},
	"mean squared logarithmic error": nn.MeanSquaredLogarithmicError{},
	"huber":                          nn.Huber{},
	"huber delta":                    nn.Huber{Delta: 0.5},
	"log cosh":                       nn.LogCosh{},
	"hinge":                          nn.Hinge{},
	"hinge binary":                   nn.Hinge{},
	"squared hinge":                  nn.SquaredHinge{},
	"categorical hinge":              nn.CategoricalHinge{},
	"kl divergence":                  nn.KLDivergence{},
	"poisson":                        nn.Poisson{},
	"cosine similarity":              nn.CosineSimilarity{},
	"binary":                         nn.BinaryCrossentropy{},
	"binary logits":                  nn.BinaryCrossentropy{FromLogits: true},
	"binary smoothing":               nn.BinaryCrossentropy{FromLogits: true, LabelSmoothing: 0.2},
	"categorical":                    nn.CategoricalCrossentropy{},
	"categorical logits":             nn.CategoricalCrossentropy{FromLogits: true},
	"categorical smoothing":          nn.CategoricalCrossentropy{FromLogits: true, LabelSmoothing: 0.1},
	"sparse":                         nn.SparseCategoricalCrossentropy{},
	"sparse logits":                  nn.SparseCategoricalCrossentropy{FromLogits: true},
	"sparse sequences":               nn.SparseCategoricalCrossentropy{FromLogits: true},
	"ctc":                            nn.CTC{},
}

// TestLosses compares losses and their gradients with those of Keras.
func TestLosses(t *testing.T) {
	for _, tt := range recorded.Read[lossCase](t, "testdata/losses.json") {
		t.Run(tt.Name, func(t *testing.T) {
			loss := losses[tt.Name]
			if loss == nil {
				t.Fatal("there is no such loss")
			}
			s := op.NewScope()
			predictions := op.Const(s, tt.Predictions.Tensor(t))
			each := loss.Losses(s, op.Const(s, tt.Labels.Tensor(t)), predictions)
			all := op.Range(s, op.Const(s, int32(0)), op.Rank(s, each), op.Const(s, int32(1)))
			grads := gradients.Compute(s, []op.Output{op.Mean(s, each, all)}, []op.Output{predictions})
			out := fetch(t, s, each, gradients.Densify(s, grads[0]))
			tt.Losses.Check(t, "losses", &out[0], 2e-5)
			tt.Gradient.Check(t, "gradient", &out[1], 2e-5)
		})
	}
}

// TestRules compares regularizers and constraints with those of Keras.
func TestRules(t *testing.T) {
	type rule = func(s *op.Scope, w op.Output) op.Output
	rules := map[string]rule{
		"l1": rule(nn.L1(0.1)), "l2": rule(nn.L2(0.2)), "l1l2": rule(nn.L1L2(0.1, 0.2)), "max norm": rule(nn.MaxNorm(2, 0)),
		"min max norm": rule(nn.MinMaxNorm(0.5, 2, 0.7, 0)), "unit norm": rule(nn.UnitNorm(0)), "non neg": nn.NonNeg,
	}
	for _, tt := range recorded.Read[struct {
		Name      string
		W, Result recorded.Array
	}](t, "testdata/rules.json") {
		s := op.NewScope()
		out := fetch(t, s, rules[tt.Name](s, op.Const(s, tt.W.Tensor(t))))
		tt.Result.Check(t, tt.Name, &out[0], 1e-5)
	}
}
