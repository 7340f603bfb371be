package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// ints adds an int32 vector.
func ints(s *op.Scope, v ...int) op.Output {
	out := make([]int32, len(v))
	for i, d := range v {
		out[i] = int32(d)
	}
	t, err := tensor.FromSlice(tensor.Shape{int64(len(out))}, out)
	if err != nil {
		s.Fail(err)
	}
	return op.Const(s, t)
}

// like adds a scalar of the element type of x.
func like(s *op.Scope, x op.Output, v float64) op.Output {
	if x.Node == nil {
		return op.Output{}
	}
	return op.ConstOf(s, x.DType().Base(), v)
}

// reshape gives x the shape whose sizes are dims; one may be -1.
func reshape(s *op.Scope, x op.Output, dims ...int) op.Output {
	return op.Reshape(s, x, ints(s, dims...))
}

func transpose(s *op.Scope, x op.Output, perm ...int) op.Output {
	return op.Transpose(s, x, ints(s, perm...))
}

func mean(s *op.Scope, x op.Output, keep bool, axes ...int) op.Output {
	return op.Mean(s, x, ints(s, axes...), op.MeanKeepDims(keep))
}

func sum(s *op.Scope, x op.Output, keep bool, axes ...int) op.Output {
	return op.Sum(s, x, ints(s, axes...), op.SumKeepDims(keep))
}

// sumAll adds the sum of all elements of x, a scalar.
func sumAll(s *op.Scope, x op.Output) op.Output {
	return op.Sum(s, x, op.Range(s, op.Const(s, int32(0)), op.Rank(s, x), op.Const(s, int32(1))))
}

// dim adds the size of a dimension of x, an int32 scalar.
func dim(s *op.Scope, x op.Output, i int) op.Output {
	return op.GatherV2(s, op.Shape(s, x), op.Const(s, int32(i)), op.Const(s, int32(0)))
}

// castLike converts x to the element type of y.
func castLike(s *op.Scope, x, y op.Output) op.Output {
	if x.Node == nil || y.Node == nil || x.DType().Base() == y.DType().Base() {
		return x
	}
	return op.Cast(s, x, y.DType().Base())
}

// split splits x into n equal parts along its last dimension.
func split(s *op.Scope, x op.Output, n int) []op.Output {
	if x.Node == nil {
		return make([]op.Output, n)
	}
	axis := s.ShapeOf(x).Rank() - 1
	parts := op.Split(s, op.Const(s, int32(axis)), x, int64(n))
	if len(parts) != n {
		return make([]op.Output, n)
	}
	return parts
}

// prod returns the product of sizes.
func prod(sizes []int64) int64 {
	p := int64(1)
	for _, d := range sizes {
		p *= d
	}
	return p
}
