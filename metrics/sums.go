package metrics

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// ints adds an int32 vector.
func ints(s *op.Scope, v ...int32) op.Output { return op.Const(s, v) }

// number adds a float32 scalar.
func number(s *op.Scope, v float64) op.Output { return op.ConstOf(s, tensor.Float32, v) }

func float(s *op.Scope, x op.Output) op.Output { return cast(s, x, tensor.Float32) }

func cast(s *op.Scope, x op.Output, dtype tensor.DType) op.Output {
	if x.Node == nil || x.DType().Base() == dtype {
		return x
	}
	return op.Cast(s, x, dtype)
}

// fail records a build error.
func fail(s *op.Scope, format string, args ...any) {
	s.Fail(status.InvalidArgumentf("metrics: "+format, args...))
}

// all adds the indices of all dimensions of x.
func all(s *op.Scope, x op.Output) op.Output {
	return op.Range(s, op.Const(s, int32(0)), op.Rank(s, x), op.Const(s, int32(1)))
}

// total adds the sum of all elements, a float64 scalar.
func total(s *op.Scope, x op.Output) op.Output {
	return op.Sum(s, cast(s, x, tensor.Float64), all(s, x))
}

// spread gives weights of shape [batch] the rank of x, so that they multiply its elements.
// Without weights it adds ones.
func spread(s *op.Scope, weights, x op.Output) op.Output {
	if weights.Node == nil {
		return op.OnesLike(s, float(s, x))
	}
	rank := s.ShapeOf(x).Rank()
	weights = float(s, weights)
	for i := s.ShapeOf(weights).Rank(); i < rank; i++ {
		weights = op.ExpandDims(s, weights, op.Const(s, int32(-1)))
	}
	return op.Mul(s, weights, op.OnesLike(s, float(s, x)))
}

// meanSums adds the sum of weighted values and the sum of weights.
func meanSums(s *op.Scope, values, weights op.Output) op.Output {
	w := spread(s, weights, values)
	return op.Pack(s, []op.Output{total(s, op.Mul(s, float(s, values), w)), total(s, w)})
}

// meanResult returns the mean for the sums of meanSums.
func meanResult(sums []float64) float64 { return ratio(sums[0], sums[1]) }

// ratio returns a / b, and 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// match gives labels the type float32 and the rank of the predictions, from which a last dimension
// of size 1 may be missing, or which may lack one.
func match(s *op.Scope, labels, predictions op.Output) op.Output {
	if labels.Node == nil || predictions.Node == nil {
		return op.Output{}
	}
	l, p := s.ShapeOf(labels), s.ShapeOf(predictions)
	labels = float(s, labels)
	switch {
	case l.Rank() == p.Rank()-1 && p.Dim(-1) == 1:
		return op.ExpandDims(s, labels, op.Const(s, int32(-1)))
	case l.Rank() == p.Rank()+1 && l.Dim(-1) == 1:
		return op.Squeeze(s, labels, op.SqueezeSqueezeDims([]int64{-1}))
	case !l.Compatible(p):
		fail(s, "labels of shape %v do not fit predictions of shape %v", l, p)
		return op.Output{}
	}
	return labels
}

// classes gives labels that are indices of classes the shape of the predictions without the last
// dimension.
func classes(s *op.Scope, labels, predictions op.Output) op.Output {
	if labels.Node == nil || predictions.Node == nil {
		return op.Output{}
	}
	if s.ShapeOf(labels).Rank() == s.ShapeOf(predictions).Rank() && s.ShapeOf(labels).Dim(-1) == 1 {
		labels = op.Squeeze(s, labels, op.SqueezeSqueezeDims([]int64{-1}))
	}
	if l, p := s.ShapeOf(labels), s.ShapeOf(predictions); l.RankKnown() && p.RankKnown() && l.Rank() != p.Rank()-1 {
		fail(s, "labels of shape %v are not the classes of predictions of shape %v", l, p)
		return op.Output{}
	}
	return cast(s, labels, tensor.Int64)
}

// largest adds the index of the largest element of the last dimension, of type int64.
func largest(s *op.Scope, x op.Output) op.Output {
	return op.ArgMax(s, x, op.Const(s, int32(-1)), op.ArgMaxOutputType(tensor.Int64))
}
