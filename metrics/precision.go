package metrics

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Precision is the fraction of the positive predictions whose label is 1. Labels are 0 or 1, and
// predictions, in [0, 1], have their shape.
type Precision struct{ Threshold float64 } // a larger prediction is positive; 0.5 if 0

// Name implements [train.Metric].
func (Precision) Name() string { return "precision" }

// Sums implements [train.Metric].
func (m Precision) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	yes, is, w := decisions(s, m.Threshold, labels, predictions, weights)
	right := op.Mul(s, op.Mul(s, yes, is), w)
	return op.Pack(s, []op.Output{total(s, right), total(s, op.Mul(s, yes, w))})
}

// Result implements [train.Metric].
func (Precision) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (Precision) Rises() bool { return true }

// Recall is the fraction of the labels of 1 whose prediction is positive.
type Recall struct{ Threshold float64 } // a larger prediction is positive; 0.5 if 0

// Name implements [train.Metric].
func (Recall) Name() string { return "recall" }

// Sums implements [train.Metric].
func (m Recall) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	yes, is, w := decisions(s, m.Threshold, labels, predictions, weights)
	right := op.Mul(s, op.Mul(s, yes, is), w)
	return op.Pack(s, []op.Output{total(s, right), total(s, op.Mul(s, is, w))})
}

// Result implements [train.Metric].
func (Recall) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (Recall) Rises() bool { return true }

// decisions adds float32 tensors that are 1 for positive predictions and for labels of 1, and the
// weights.
func decisions(s *op.Scope, limit float64, labels, predictions, weights op.Output) (yes, is, w op.Output) {
	if limit == 0 {
		limit = 0.5
	}
	yes = float(s, op.Greater(s, predictions, number(s, limit)))
	is = float(s, cast(s, match(s, labels, predictions), tensor.Bool))
	return yes, is, spread(s, weights, predictions)
}

// Average says how [F1Score] combines classes.
type Average string

// The averages.
const (
	Macro    Average = "macro"    // mean of the scores of the classes
	Micro    Average = "micro"    // score of all classes together
	Weighted Average = "weighted" // mean by the number of labels of the classes
)

// F1Score is the harmonic mean of precision and recall, of one-hot or multi-hot labels and
// predictions, both of shape [batch, classes].
type F1Score struct {
	Average Average // [Macro] if ""
	// Threshold makes larger predictions positive. If it is 0, the largest of the classes is.
	Threshold float64
}

// Name implements [train.Metric].
func (F1Score) Name() string { return "f1_score" }

// Sums implements [train.Metric].
func (m F1Score) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	is := match(s, labels, predictions)
	var yes op.Output
	if m.Threshold != 0 {
		yes = float(s, op.Greater(s, predictions, number(s, m.Threshold)))
	} else {
		top := op.Max(s, predictions, ints(s, -1), op.MaxKeepDims(true))
		yes = float(s, op.GreaterEqual(s, predictions, top))
	}
	w := spread(s, weights, predictions)
	column := func(x op.Output) op.Output {
		return op.Sum(s, cast(s, op.Mul(s, x, w), tensor.Float64), ints(s, 0))
	}
	return op.ConcatV2(s, []op.Output{column(op.Mul(s, yes, is)), column(yes), column(is)}, op.Const(s, int32(0)))
}

// Result implements [train.Metric].
func (m F1Score) Result(total []float64) float64 {
	n := len(total) / 3
	right, yes, is := total[:n], total[n:2*n], total[2*n:]
	if m.Average == Micro {
		return f1(add(right), add(yes), add(is))
	}
	score, labels := 0.0, add(is)
	for i := range n {
		f := f1(right[i], yes[i], is[i])
		if m.Average == Weighted {
			score += f * ratio(is[i], labels)
		} else {
			score += f / float64(n)
		}
	}
	return score
}

// Rises implements [train.Metric].
func (F1Score) Rises() bool { return true }

// f1 returns the score for the number of right positive predictions, of positive predictions, and
// of labels of 1.
func f1(right, yes, is float64) float64 {
	const epsilon = 1e-7 // Keras's
	precision, recall := right/(yes+epsilon), right/(is+epsilon)
	return 2 * precision * recall / (precision + recall + epsilon)
}

func add(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum
}
