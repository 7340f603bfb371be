package metrics

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// MeanSquaredError is the mean of (prediction - label)².
type MeanSquaredError struct{}

// Name implements [train.Metric].
func (MeanSquaredError) Name() string { return "mean_squared_error" }

// Sums implements [train.Metric].
func (MeanSquaredError) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return meanSums(s, op.SquaredDifference(s, predictions, match(s, labels, predictions)), weights)
}

// Result implements [train.Metric].
func (MeanSquaredError) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (MeanSquaredError) Rises() bool { return false }

// RootMeanSquaredError is the root of [MeanSquaredError].
type RootMeanSquaredError struct{}

// Name implements [train.Metric].
func (RootMeanSquaredError) Name() string { return "root_mean_squared_error" }

// Sums implements [train.Metric].
func (RootMeanSquaredError) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return MeanSquaredError{}.Sums(s, labels, predictions, weights)
}

// Result implements [train.Metric].
func (RootMeanSquaredError) Result(total []float64) float64 { return math.Sqrt(meanResult(total)) }

// Rises implements [train.Metric].
func (RootMeanSquaredError) Rises() bool { return false }

// MeanAbsoluteError is the mean of |prediction - label|.
type MeanAbsoluteError struct{}

// Name implements [train.Metric].
func (MeanAbsoluteError) Name() string { return "mean_absolute_error" }

// Sums implements [train.Metric].
func (MeanAbsoluteError) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return meanSums(s, op.Abs(s, op.Sub(s, predictions, match(s, labels, predictions))), weights)
}

// Result implements [train.Metric].
func (MeanAbsoluteError) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (MeanAbsoluteError) Rises() bool { return false }

// MeanAbsolutePercentageError is the mean of |(label - prediction) / label|, times 100.
type MeanAbsolutePercentageError struct{}

// Name implements [train.Metric].
func (MeanAbsolutePercentageError) Name() string { return "mean_absolute_percentage_error" }

// Sums implements [train.Metric].
func (MeanAbsolutePercentageError) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	labels = match(s, labels, predictions)
	size := op.Maximum(s, op.Abs(s, labels), number(s, epsilon))
	return meanSums(s, op.Mul(s, number(s, 100), op.Abs(s, op.RealDiv(s, op.Sub(s, labels, predictions), size))), weights)
}

// epsilon is the constant that Keras adds to divisors.
const epsilon = 1e-7

// Result implements [train.Metric].
func (MeanAbsolutePercentageError) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (MeanAbsolutePercentageError) Rises() bool { return false }

// MeanSquaredLogarithmicError is the mean of (log(1 + prediction) - log(1 + label))².
type MeanSquaredLogarithmicError struct{}

// Name implements [train.Metric].
func (MeanSquaredLogarithmicError) Name() string { return "mean_squared_logarithmic_error" }

// Sums implements [train.Metric].
func (MeanSquaredLogarithmicError) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	log := func(x op.Output) op.Output { return op.Log1p(s, op.Maximum(s, x, number(s, epsilon))) }
	return meanSums(s, op.SquaredDifference(s, log(predictions), log(match(s, labels, predictions))), weights)
}

// Result implements [train.Metric].
func (MeanSquaredLogarithmicError) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (MeanSquaredLogarithmicError) Rises() bool { return false }

// R2Score is the fraction of the variance of the labels that the predictions explain: 1 minus the
// squared error divided by that of the mean. It is the mean over the outputs; labels and
// predictions have shape [batch, outputs].
type R2Score struct{}

// Name implements [train.Metric].
func (R2Score) Name() string { return "r2_score" }

// Sums implements [train.Metric].
func (R2Score) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	labels = match(s, labels, predictions)
	w := spread(s, weights, predictions)
	column := func(x op.Output) op.Output {
		return op.Sum(s, cast(s, op.Mul(s, x, w), tensor.Float64), ints(s, 0))
	}
	return op.ConcatV2(s, []op.Output{
		column(labels), column(op.Square(s, labels)), column(op.SquaredDifference(s, labels, predictions)), column(op.OnesLike(s, labels)),
	}, op.Const(s, int32(0)))
}

// Result implements [train.Metric].
func (R2Score) Result(total []float64) float64 {
	n := len(total) / 4
	score := 0.0
	for i := range n {
		sum, squares, wrong, count := total[i], total[n+i], total[2*n+i], total[3*n+i]
		score += (1 - ratio(wrong, squares-ratio(sum*sum, count))) / float64(n)
	}
	return score
}

// Rises implements [train.Metric].
func (R2Score) Rises() bool { return true }
