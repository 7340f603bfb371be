package metrics

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Curve is a curve whose area [AUC] measures.
type Curve string

// The curves.
const (
	ROC Curve = "ROC" // recall over the rate of false positives
	PR  Curve = "PR"  // precision over recall
)

// AUC approximates the area under a curve of the thresholds, as a sum over Thresholds of them.
// Labels are 0 or 1, and predictions, in [0, 1], have their shape.
type AUC struct {
	Curve      Curve // [ROC] if ""
	Thresholds int   // 200 if 0
}

// Name implements [train.Metric].
func (AUC) Name() string { return "auc" }

func (m AUC) thresholds() int {
	if m.Thresholds == 0 {
		return 200
	}
	return m.Thresholds
}

// Sums implements [train.Metric]. They are the weights of the labels of 1, and of those of 0, whose
// predictions lie between two thresholds.
func (m AUC) Sums(s *op.Scope, labels, predictions, weights op.Output) op.Output {
	n := int32(m.thresholds())
	flat := func(x op.Output) op.Output { return op.Reshape(s, x, ints(s, -1)) }
	is := flat(float(s, cast(s, match(s, labels, predictions), tensor.Bool)))
	w := flat(spread(s, weights, predictions))
	place := op.Sub(s, op.Ceil(s, op.Mul(s, flat(predictions), number(s, float64(n-1)))), number(s, 1))
	bucket := op.Cast(s, op.ClipByValue(s, place, number(s, 0), number(s, float64(n-1))), tensor.Int32)
	count := func(x op.Output) op.Output {
		return op.UnsortedSegmentSum(s, cast(s, x, tensor.Float64), bucket, op.Const(s, n))
	}
	positive := op.Mul(s, is, w)
	return op.ConcatV2(s, []op.Output{count(positive), count(op.Sub(s, w, positive))}, op.Const(s, int32(0)))
}

// Result implements [train.Metric].
func (m AUC) Result(total []float64) float64 {
	n := m.thresholds()
	// weights of the positive predictions whose labels are 1 and 0, by threshold
	truePositive, falsePositive := make([]float64, n), make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		truePositive[i], falsePositive[i] = total[i], total[n+i]
		if i+1 < n {
			truePositive[i] += truePositive[i+1]
			falsePositive[i] += falsePositive[i+1]
		}
	}
	// The first threshold is below all predictions and the last above.
	truePositive[n-1], falsePositive[n-1] = 0, 0
	if m.Curve == PR {
		return areaPR(truePositive, falsePositive)
	}
	area := 0.0
	for i := range n - 1 {
		width := ratio(falsePositive[i]-falsePositive[i+1], falsePositive[0])
		area += width * ratio(truePositive[i]+truePositive[i+1], 2*truePositive[0])
	}
	return area
}

// areaPR interpolates true and false positives linearly between thresholds (Davis and Goadrich,
// 2006).
func areaPR(truePositive, falsePositive []float64) float64 {
	area := 0.0
	for i := range len(truePositive) - 1 {
		gained := truePositive[i] - truePositive[i+1]
		predicted := truePositive[i] + falsePositive[i]
		after := truePositive[i+1] + falsePositive[i+1]
		slope := ratio(gained, max(predicted-after, 0))
		intercept := truePositive[i+1] - slope*after
		growth := 1.0
		if predicted > 0 && after > 0 {
			growth = predicted / after
		}
		area += ratio(slope*(gained+intercept*math.Log(growth)), max(truePositive[0], 0))
	}
	return area
}

// Rises implements [train.Metric].
func (AUC) Rises() bool { return true }
