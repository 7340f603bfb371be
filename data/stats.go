package data

import (
	"context"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Moments returns the mean and the variance of each component of a tensor of the elements, a
// float32 vector, for a normalization ([nn.Normalization]).
func (d *Dataset) Moments(ctx context.Context, column int) (mean, variance []float32, err error) {
	if d.batched || column < 0 || column >= len(d.spec) || d.spec[column].DType != tensor.Float32 {
		return nil, nil, status.InvalidArgumentf("data: Moments needs a float32 column of single elements, column %d is not", column)
	}
	var sums, squares []float64
	n := 0.0
	for e, err := range d.Elements(ctx, 0) {
		if err != nil {
			return nil, nil, err
		}
		values := tensor.Values[float32](&e[column])
		if sums == nil {
			sums, squares = make([]float64, len(values)), make([]float64, len(values))
		}
		if len(values) != len(sums) {
			return nil, nil, status.InvalidArgumentf("data: elements with %d and %d components", len(values), len(sums))
		}
		for i, v := range values {
			sums[i] += float64(v)
			squares[i] += float64(v) * float64(v)
		}
		n++
	}
	for i := range sums {
		m := sums[i] / n
		mean, variance = append(mean, float32(m)), append(variance, float32(max(squares[i]/n-m*m, 0)))
	}
	return mean, variance, nil
}

// ClassWeights returns factors for the losses of classes, so that rare classes count as much as
// frequent ones: the number of elements divided by that of classes and by that of the elements of
// the class. Labels, the last tensor of the elements, are int32 or int64 scalars in [0, classes).
// The weight of a class without elements is 0.
func (d *Dataset) ClassWeights(ctx context.Context, classes int) ([]float64, error) {
	counts := make([]float64, classes)
	total := 0.0
	for e, err := range d.Elements(ctx, 0) {
		if err != nil {
			return nil, err
		}
		labels, err := integers(&e[len(e)-1])
		if err != nil {
			return nil, err
		}
		for _, label := range labels {
			if label < 0 || label >= int64(classes) {
				return nil, status.InvalidArgumentf("data: the label %d is not in [0, %d)", label, classes)
			}
			counts[label]++
			total++
		}
	}
	for i, n := range counts {
		if n > 0 {
			counts[i] = total / (float64(classes) * n)
		}
	}
	return counts, nil
}

// integers returns the elements of an integer tensor.
func integers(t *tensor.Tensor) ([]int64, error) {
	switch t.DType() {
	case tensor.Int64:
		return tensor.Values[int64](t), nil
	case tensor.Int32:
		out := make([]int64, t.NumElements())
		for i, v := range tensor.Values[int32](t) {
			out[i] = int64(v)
		}
		return out, nil
	}
	return nil, status.InvalidArgumentf("data: labels are of type %v, want int32 or int64", t.DType())
}
