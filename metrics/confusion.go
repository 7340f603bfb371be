package metrics

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// ConfusionMatrix counts, for each class of the labels, how often each class was predicted. Labels
// are indices of classes; predictions too, or have a last dimension of classes more. Its result is
// the accuracy; [ConfusionMatrix.Matrix] returns the counts.
type ConfusionMatrix struct{ Classes int }

// Name implements [train.Metric].
func (ConfusionMatrix) Name() string { return "confusion" }

// Sums implements [train.Metric].
func (m ConfusionMatrix) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	if m.Classes < 1 {
		fail(s, "a confusion matrix of %d classes", m.Classes)
		return op.Output{}
	}
	if l, p := s.ShapeOf(labels), s.ShapeOf(predictions); p.Rank() > l.Rank() || l.Rank() == p.Rank() && l.Dim(-1) == 1 && p.Dim(-1) > 1 {
		labels = classes(s, labels, predictions)
		predictions = largest(s, predictions)
	}
	flat := func(x op.Output) op.Output { return op.Reshape(s, x, ints(s, -1)) }
	n := op.Const(s, int64(m.Classes))
	cell := op.AddV2(s, op.Mul(s, cast(s, flat(labels), tensor.Int64), n), cast(s, flat(predictions), tensor.Int64))
	w := cast(s, flat(spread(s, weights, predictions)), tensor.Float64)
	return op.UnsortedSegmentSum(s, w, cell, op.Const(s, int32(m.Classes*m.Classes)))
}

// Result implements [train.Metric].
func (m ConfusionMatrix) Result(total []float64) float64 {
	right := 0.0
	for i, row := range m.Matrix(total) {
		right += row[i]
	}
	return ratio(right, add(total))
}

// Matrix returns the counts of a total: one row for each class of the labels, one column for each
// predicted class.
func (m ConfusionMatrix) Matrix(total []float64) [][]float64 {
	rows := make([][]float64, m.Classes)
	for i := range rows {
		rows[i] = total[i*m.Classes : (i+1)*m.Classes]
	}
	return rows
}

// Rises implements [train.Metric].
func (ConfusionMatrix) Rises() bool { return true }

// MeanIoU is the mean over the classes of the elements in both labels and predictions, divided by
// those in one of them. Labels and predictions are those of [ConfusionMatrix].
type MeanIoU struct{ Classes int }

// Name implements [train.Metric].
func (MeanIoU) Name() string { return "mean_iou" }

// Sums implements [train.Metric].
func (m MeanIoU) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	return ConfusionMatrix(m).Sums(s, labels, predictions, weights)
}

// Result implements [train.Metric].
func (m MeanIoU) Result(total []float64) float64 {
	rows := ConfusionMatrix(m).Matrix(total)
	sum, n := 0.0, 0.0
	for i, row := range rows {
		either := add(row) - row[i]
		for j := range rows {
			either += rows[j][i]
		}
		if either > 0 {
			sum += row[i] / either
			n++
		}
	}
	return ratio(sum, n)
}

// Rises implements [train.Metric].
func (MeanIoU) Rises() bool { return true }
