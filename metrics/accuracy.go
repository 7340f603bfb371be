package metrics

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Accuracy is the fraction of predictions that are equal to the labels, of the same shape.
type Accuracy struct{}

// Name implements [train.Metric].
func (Accuracy) Name() string { return "accuracy" }

// Sums implements [train.Metric].
func (Accuracy) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return meanSums(s, op.Equal(s, match(s, labels, predictions), float(s, predictions)), weights)
}

// Result implements [train.Metric].
func (Accuracy) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (Accuracy) Rises() bool { return true }

// BinaryAccuracy is the fraction of predictions that are on the side of the threshold that their
// label, 0 or 1, is on. For logits the threshold is 0.
type BinaryAccuracy struct {
	Threshold  float64 // 0.5 if 0 and not FromLogits
	FromLogits bool    // predictions are logits instead of probabilities
}

// Name implements [train.Metric].
func (BinaryAccuracy) Name() string { return "binary_accuracy" }

// Sums implements [train.Metric].
func (m BinaryAccuracy) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	limit := m.Threshold
	if limit == 0 && !m.FromLogits {
		limit = 0.5
	}
	yes := float(s, op.Greater(s, predictions, number(s, limit)))
	right := float(s, op.Equal(s, match(s, labels, predictions), yes))
	return meanSums(s, op.Mean(s, right, ints(s, -1)), weights)
}

// Result implements [train.Metric].
func (BinaryAccuracy) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (BinaryAccuracy) Rises() bool { return true }

// CategoricalAccuracy is the fraction of predictions [batch, …, classes] whose largest element is
// that of the one-hot label.
type CategoricalAccuracy struct{}

// Name implements [train.Metric].
func (CategoricalAccuracy) Name() string { return "accuracy" }

// Sums implements [train.Metric].
func (CategoricalAccuracy) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return meanSums(s, op.Equal(s, largest(s, match(s, labels, predictions)), largest(s, predictions)), weights)
}

// Result implements [train.Metric].
func (CategoricalAccuracy) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (CategoricalAccuracy) Rises() bool { return true }

// SparseCategoricalAccuracy is [CategoricalAccuracy] for labels [batch, …] that are indices of
// classes.
type SparseCategoricalAccuracy struct{}

// Name implements [train.Metric].
func (SparseCategoricalAccuracy) Name() string { return "accuracy" }

// Sums implements [train.Metric].
func (SparseCategoricalAccuracy) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return meanSums(s, op.Equal(s, classes(s, labels, predictions), largest(s, predictions)), weights)
}

// Result implements [train.Metric].
func (SparseCategoricalAccuracy) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (SparseCategoricalAccuracy) Rises() bool { return true }

// TopK is the fraction of predictions [batch, classes] for which fewer than K classes are more
// likely than that of the label. Labels are indices of classes [batch], or one-hot [batch,
// classes].
type TopK struct{ K int } // 5 if 0

// Name implements [train.Metric].
func (TopK) Name() string { return "top_k_accuracy" }

// Sums implements [train.Metric].
func (m TopK) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	k := int32(m.K)
	if k == 0 {
		k = 5
	}
	if l, p := s.ShapeOf(labels), s.ShapeOf(predictions); l.Rank() == p.Rank() && l.Dim(-1) != 1 {
		labels = largest(s, match(s, labels, predictions))
	}
	targets := cast(s, classes(s, labels, predictions), tensor.Int32)
	return meanSums(s, op.InTopKV2(s, predictions, targets, op.Const(s, k)), weights)
}

// Result implements [train.Metric].
func (TopK) Result(total []float64) float64 { return meanResult(total) }

// Rises implements [train.Metric].
func (TopK) Rises() bool { return true }
