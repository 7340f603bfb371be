package nn

import (
	"math"

	"github.com/weft-ml/weft/op"
)

// A Loss measures how far predictions are from labels. The types of this package are losses whose
// zero value has Keras's defaults.
type Loss interface {
	// Losses adds the loss of each element of the batch: predictions of shape [batch, …, k] give
	// losses of shape [batch, …]. Labels have the shape of the predictions unless the loss says
	// otherwise; a last dimension of size 1 may be missing.
	Losses(s *op.Scope, labels, predictions op.Output) op.Output
}

// MeanSquaredError is the mean of (prediction - label)².
type MeanSquaredError struct{}

// Losses implements [Loss].
func (MeanSquaredError) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	return lastMean(s, op.SquaredDifference(s, predictions, match(s, labels, predictions)))
}

// MeanAbsoluteError is the mean of |prediction - label|.
type MeanAbsoluteError struct{}

// Losses implements [Loss].
func (MeanAbsoluteError) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	return lastMean(s, op.Abs(s, op.Sub(s, predictions, match(s, labels, predictions))))
}

// MeanAbsolutePercentageError is the mean of |(label - prediction) / label|, times 100.
type MeanAbsolutePercentageError struct{}

// Losses implements [Loss].
func (MeanAbsolutePercentageError) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = match(s, labels, predictions)
	size := op.Maximum(s, op.Abs(s, labels), like(s, labels, epsilon))
	rel := op.Abs(s, op.RealDiv(s, op.Sub(s, labels, predictions), size))
	return op.Mul(s, like(s, rel, 100), lastMean(s, rel))
}

// MeanSquaredLogarithmicError is the mean of (log(1 + prediction) - log(1 + label))².
type MeanSquaredLogarithmicError struct{}

// Losses implements [Loss].
func (MeanSquaredLogarithmicError) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	log := func(x op.Output) op.Output {
		return op.Log(s, op.AddV2(s, op.Maximum(s, x, like(s, x, epsilon)), like(s, x, 1)))
	}
	return lastMean(s, op.SquaredDifference(s, log(predictions), log(match(s, labels, predictions))))
}

// Huber is quadratic for errors up to Delta and linear beyond (Huber, 1964).
type Huber struct{ Delta float64 } // 1 if 0

// Losses implements [Loss].
func (l Huber) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	size := op.Abs(s, op.Sub(s, predictions, match(s, labels, predictions)))
	delta := orDefault(l.Delta, 1)
	small := op.Mul(s, like(s, size, 0.5), op.Square(s, size))
	large := op.Sub(s, op.Mul(s, like(s, size, delta), size), like(s, size, 0.5*delta*delta))
	return lastMean(s, op.SelectV2(s, op.LessEqual(s, size, like(s, size, delta)), small, large))
}

// LogCosh is the mean of log(cosh(prediction - label)).
type LogCosh struct{}

// Losses implements [Loss].
func (LogCosh) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	x := op.Sub(s, predictions, match(s, labels, predictions))
	soft := op.Softplus(s, op.Mul(s, x, like(s, x, -2)))
	return lastMean(s, op.AddV2(s, x, op.Sub(s, soft, like(s, x, math.Ln2))))
}

// Hinge is the mean of max(1 - label * prediction, 0). Labels are -1 and 1; batches of labels 0 and
// 1 are converted.
type Hinge struct{}

// Losses implements [Loss].
func (Hinge) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	return lastMean(s, hinge(s, labels, predictions))
}

// SquaredHinge is the mean of the squares of the terms of [Hinge].
type SquaredHinge struct{}

// Losses implements [Loss].
func (SquaredHinge) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	return lastMean(s, op.Square(s, hinge(s, labels, predictions)))
}

func hinge(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = match(s, labels, predictions)
	one := like(s, labels, 1)
	binary := op.LogicalOr(s, op.Equal(s, labels, like(s, labels, 0)), op.Equal(s, labels, one))
	all := op.All(s, binary, op.Range(s, op.Const(s, int32(0)), op.Rank(s, labels), op.Const(s, int32(1))))
	signs := op.SelectV2(s, all, op.Sub(s, op.Mul(s, like(s, labels, 2), labels), one), labels)
	return op.Maximum(s, op.Sub(s, one, op.Mul(s, signs, predictions)), like(s, labels, 0))
}

// CategoricalHinge is max(negative - positive + 1, 0): positive is the prediction of the class of a
// one-hot label, negative the largest of the others.
type CategoricalHinge struct{}

// Losses implements [Loss].
func (CategoricalHinge) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = match(s, labels, predictions)
	last := ints(s, -1)
	one := like(s, labels, 1)
	positive := op.Sum(s, op.Mul(s, labels, predictions), last)
	negative := op.Max(s, op.Mul(s, op.Sub(s, one, labels), predictions), last)
	return op.Maximum(s, op.AddV2(s, op.Sub(s, negative, positive), one), like(s, labels, 0))
}

// KLDivergence is the sum of label * log(label / prediction).
type KLDivergence struct{}

// Losses implements [Loss].
func (KLDivergence) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	labels = clip(s, match(s, labels, predictions), 1)
	ratio := op.RealDiv(s, labels, clip(s, predictions, 1))
	return op.Sum(s, op.Mul(s, labels, op.Log(s, ratio)), ints(s, -1))
}

// Poisson is the mean of prediction - label * log(prediction).
type Poisson struct{}

// Losses implements [Loss].
func (Poisson) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	log := op.Log(s, op.AddV2(s, predictions, like(s, predictions, epsilon)))
	return lastMean(s, op.Sub(s, predictions, op.Mul(s, match(s, labels, predictions), log)))
}

// CosineSimilarity is minus the cosine of the angle between label and prediction.
type CosineSimilarity struct{}

// Losses implements [Loss].
func (CosineSimilarity) Losses(s *op.Scope, labels, predictions op.Output) op.Output {
	unit := func(x op.Output) op.Output {
		squares := op.Sum(s, op.Square(s, x), ints(s, -1), op.SumKeepDims(true))
		return op.Mul(s, x, op.Rsqrt(s, op.Maximum(s, squares, like(s, x, 1e-12))))
	}
	labels = match(s, labels, predictions)
	return op.Neg(s, op.Sum(s, op.Mul(s, unit(labels), unit(predictions)), ints(s, -1)))
}

// match converts labels to the type of the predictions and, if only a last dimension of size 1 is
// missing or superfluous, to their rank.
func match(s *op.Scope, labels, predictions op.Output) op.Output {
	if labels.Node == nil || predictions.Node == nil {
		return op.Output{}
	}
	labels = castLike(s, labels, predictions)
	l, p := s.ShapeOf(labels), s.ShapeOf(predictions)
	switch {
	case l.Rank() == p.Rank()-1 && p.Dim(-1) == 1:
		return op.ExpandDims(s, labels, op.Const(s, int32(-1)))
	case l.Rank() == p.Rank()+1 && l.Dim(-1) == 1:
		return op.Squeeze(s, labels, op.SqueezeSqueezeDims([]int64{-1}))
	}
	if !l.Compatible(p) {
		fail(s, "labels of shape %v do not fit predictions of shape %v; for the indices of classes use SparseCategoricalCrossentropy, for numbers "+
			"Units: 1 in the last layer", l, p)
		return op.Output{}
	}
	return labels
}

func lastMean(s *op.Scope, x op.Output) op.Output { return op.Mean(s, x, ints(s, -1)) }

// clip limits x to [epsilon, high].
func clip(s *op.Scope, x op.Output, high float64) op.Output {
	return op.ClipByValue(s, x, like(s, x, epsilon), like(s, x, high))
}
