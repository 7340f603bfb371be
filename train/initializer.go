package train

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Initializer adds nodes for the initial value of a variable.
type Initializer func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output

// Zeros is the initializer of all zeros.
func Zeros(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(0)(s, shape, dtype)
}

// Ones is the initializer of all ones.
func Ones(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(1)(s, shape, dtype)
}

// Constant gives every element the value v.
func Constant(v float64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		return op.Fill(s, dims(s, shape), op.ConstOf(s, dtype, v))
	}
}

// Values gives the elements a fixed value: anything that tensor.New takes.
func Values(v any) Initializer {
	return func(s *op.Scope, _ tensor.Shape, _ tensor.DType) op.Output { return op.Const(s, v) }
}

// RandomUniform draws elements from [lo, hi). A nil seed leaves the choice to the graph's seed.
func RandomUniform(lo, hi float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s1, s2 := s.Seeds(seed)
		u := op.RandomUniform(s, dims(s, shape), dtype, op.RandomUniformSeed(s1), op.RandomUniformSeed2(s2))
		return op.AddV2(s, op.Mul(s, u, op.ConstOf(s, dtype, hi-lo)), op.ConstOf(s, dtype, lo))
	}
}

// RandomNormal draws elements from the normal distribution.
func RandomNormal(mean, stddev float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s1, s2 := s.Seeds(seed)
		x := op.RandomStandardNormal(s, dims(s, shape), dtype, op.RandomStandardNormalSeed(s1), op.RandomStandardNormalSeed2(s2))
		return op.AddV2(s, op.Mul(s, x, op.ConstOf(s, dtype, stddev)), op.ConstOf(s, dtype, mean))
	}
}

// TruncatedNormal draws elements from the normal distribution, and again where they are more than two standard deviations
// from the mean.
func TruncatedNormal(mean, stddev float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s1, s2 := s.Seeds(seed)
		x := op.TruncatedNormal(s, dims(s, shape), dtype, op.TruncatedNormalSeed(s1), op.TruncatedNormalSeed2(s2))
		return op.AddV2(s, op.Mul(s, x, op.ConstOf(s, dtype, stddev)), op.ConstOf(s, dtype, mean))
	}
}

// GlorotUniform draws elements uniformly within a bound that keeps the variance of signals from layer to layer
// (Glorot and Bengio, 2010).
func GlorotUniform(seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		in, out := fans(shape)
		bound := math.Sqrt(6 / (in + out))
		return RandomUniform(-bound, bound, seed)(s, shape, dtype)
	}
}

// fans returns the number of inputs and outputs of a unit whose weights have the given shape.
func fans(shape tensor.Shape) (in, out float64) {
	switch len(shape) {
	case 0:
		return 1, 1
	case 1:
		return float64(shape[0]), float64(shape[0])
	}
	field := 1.0
	for _, d := range shape[:len(shape)-2] {
		field *= float64(d)
	}
	return field * float64(shape[len(shape)-2]), field * float64(shape[len(shape)-1])
}

func dims(s *op.Scope, shape tensor.Shape) op.Output {
	v := make([]int32, len(shape))
	for i, d := range shape {
		v[i] = int32(d)
	}
	return op.Const(s, v)
}
