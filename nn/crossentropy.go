package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// BinaryCrossentropy is the cross entropy of labels in [0, 1] and predicted probabilities, for each
// output on its own.
type BinaryCrossentropy struct {
	FromLogits     bool    // predictions are logits instead of probabilities
	LabelSmoothing float64 // moves labels towards 0.5
}

// Losses implements [Loss].
func (l BinaryCrossentropy) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = match(s, labels, predictions)
	one := like(s, labels, 1)
	if l.LabelSmoothing != 0 {
		labels = op.AddV2(s, op.Mul(s, labels, like(s, labels, 1-l.LabelSmoothing)), like(s, labels, l.LabelSmoothing/2))
	}
	if l.FromLogits {
		zero := like(s, labels, 0)
		size := op.Abs(s, predictions)
		// max(x, 0) - x * label + log(1 + exp(-|x|)), without overflow
		linear := op.Sub(s, op.Maximum(s, predictions, zero), op.Mul(s, predictions, labels))
		return lastMean(s, op.AddV2(s, linear, op.Log1p(s, op.Exp(s, op.Neg(s, size)))))
	}
	if !wantProbabilities(s, predictions, "Sigmoid") {
		return op.Output{}
	}
	p := clip(s, predictions, 1-epsilon)
	yes := op.Mul(s, labels, op.Log(s, p))
	no := op.Mul(s, op.Sub(s, one, labels), op.Log(s, op.Sub(s, one, p)))
	return lastMean(s, op.Neg(s, op.AddV2(s, yes, no)))
}

// CategoricalCrossentropy is the cross entropy of one-hot labels, or other distributions over the
// last dimension, and predicted probabilities.
type CategoricalCrossentropy struct {
	FromLogits     bool    // predictions are logits instead of probabilities
	LabelSmoothing float64 // moves labels towards the uniform distribution
}

// Losses implements [Loss].
func (l CategoricalCrossentropy) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = match(s, labels, predictions)
	if labels.Node == nil {
		return op.Output{}
	}
	if l.LabelSmoothing != 0 {
		classes := float64(max(s.ShapeOf(predictions).Dim(-1), 1))
		labels = op.AddV2(s, op.Mul(s, labels, like(s, labels, 1-l.LabelSmoothing)), like(s, labels, l.LabelSmoothing/classes))
	}
	if l.FromLogits {
		return op.Neg(s, op.Sum(s, op.Mul(s, labels, op.LogSoftmax(s, predictions)), ints(s, -1)))
	}
	if !wantProbabilities(s, predictions, "Softmax") {
		return op.Output{}
	}
	total := op.Sum(s, predictions, ints(s, -1), op.SumKeepDims(true))
	p := clip(s, op.RealDiv(s, predictions, total), 1-epsilon)
	return op.Neg(s, op.Sum(s, op.Mul(s, labels, op.Log(s, p)), ints(s, -1)))
}

// SparseCategoricalCrossentropy is [CategoricalCrossentropy] for labels that are the indices of
// classes: predictions of shape [batch, …, classes] have labels of shape [batch, …], of an integer
// type, in [0, classes). Other labels are an InvalidArgument error of the step.
type SparseCategoricalCrossentropy struct {
	FromLogits bool // predictions are logits instead of probabilities
}

// Losses implements [Loss].
func (l SparseCategoricalCrossentropy) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	if labels.Node == nil || predictions.Node == nil {
		return op.Output{}
	}
	shape := s.ShapeOf(predictions)
	if rank := s.ShapeOf(labels).Rank(); rank == shape.Rank() && s.ShapeOf(labels).Dim(-1) == 1 {
		labels = op.Squeeze(s, labels, op.SqueezeSqueezeDims([]int64{-1}))
	}
	if rank := s.ShapeOf(labels).Rank(); rank != shape.Rank()-1 {
		fail(s, "labels of shape %v are not the classes of predictions of shape %v; for one-hot labels use CategoricalCrossentropy",
			s.ShapeOf(labels), shape)
		return op.Output{}
	}
	if t := labels.DType().Base(); t != tensor.Int32 && t != tensor.Int64 {
		labels = classesOf(s, labels)
	}
	logits := predictions
	if !l.FromLogits {
		if !wantProbabilities(s, predictions, "Softmax") {
			return op.Output{}
		}
		logits = op.Log(s, clip(s, predictions, 1-epsilon))
	}
	if shape.Rank() == 2 {
		losses, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, logits, labels)
		return losses
	}
	flat := reshape(s, logits, -1, int(shape.Dim(-1)))
	losses, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, flat, reshape(s, labels, -1))
	return op.Reshape(s, losses, op.Shape(s, labels))
}

// classesOf converts labels that are not integers. A label with a fraction is an error of the step:
// it is a measured number, and not the index of a class.
func classesOf(s *op.Scope, labels op.Output) op.Output {
	if labels.DType().Base().IsFloating() {
		whole := op.All(s, op.Equal(s, op.Floor(s, labels), labels), op.Range(s, op.Const(s, int32(0)), op.Rank(s, labels), op.Const(s, int32(1))))
		check := op.Assert(s, whole, []op.Output{op.Const(s, "the labels are numbers and not the indices of classes:"), labels})
		s = s.WithControlDependencies(check)
	}
	return op.Cast(s, labels, tensor.Int64)
}

// fail records a build error of a loss or a model.
func fail(s *op.Scope, format string, args ...any) {
	s.Fail(status.InvalidArgumentf("nn: "+format, args...))
}
