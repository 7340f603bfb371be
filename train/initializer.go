package train

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Initializer adds nodes for the initial value of a variable. Where it draws random numbers, the
// same seeds give the numbers that TensorFlow's initializer of that name gives; a nil seed leaves
// the choice to the seed of the graph ([op.Scope.SetSeed]).
type Initializer func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output

// Zeros is the initializer of all zeros.
func Zeros(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(0)(s.Named("zeros"), shape, dtype)
}

// Ones is the initializer of all ones.
func Ones(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(1)(s.Named("ones"), shape, dtype)
}

// Constant gives every element the value v.
func Constant(v float64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("Const")
		return op.Fill(result, dims(s, shape), op.ConstOf(s, dtype, v))
	}
}

// Values gives the variable a fixed value: anything that [tensor.New] takes.
func Values(v any) Initializer {
	return func(s *op.Scope, _ tensor.Shape, _ tensor.DType) op.Output { return op.Const(s, v) }
}

// RandomUniform draws elements from [lo, hi).
func RandomUniform(lo, hi float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("random_uniform")
		s1, s2 := s.Seeds(seed)
		u := op.RandomUniform(s, dims(s, shape), dtype, op.RandomUniformSeed(s1), op.RandomUniformSeed2(s2))
		low := op.ConstOf(s.Named("min"), dtype, lo)
		return op.AddV2(result, op.Mul(s, u, op.Sub(s, op.ConstOf(s.Named("max"), dtype, hi), low)), low)
	}
}

// RandomNormal draws elements from the normal distribution.
func RandomNormal(mean, stddev float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("random_normal")
		s1, s2 := s.Seeds(seed)
		x := op.RandomStandardNormal(s, dims(s, shape), dtype, op.RandomStandardNormalSeed(s1), op.RandomStandardNormalSeed2(s2))
		return op.AddV2(result, op.Mul(s, x, op.ConstOf(s.Named("stddev"), dtype, stddev)), op.ConstOf(s.Named("mean"), dtype, mean))
	}
}

// TruncatedNormal draws elements from the normal distribution, and again where they are more than
// two standard deviations from the mean.
func TruncatedNormal(mean, stddev float64, seed *int64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("truncated_normal")
		s1, s2 := s.Seeds(seed)
		x := op.TruncatedNormal(s, dims(s, shape), dtype, op.TruncatedNormalSeed(s1), op.TruncatedNormalSeed2(s2))
		return op.AddV2(result, op.Mul(s, x, op.ConstOf(s.Named("stddev"), dtype, stddev)), op.ConstOf(s.Named("mean"), dtype, mean))
	}
}

// GlorotUniform draws elements uniformly within a bound that keeps the variance of signals from
// layer to layer, in both directions (Glorot and Bengio, 2010). It is the default of TensorFlow's
// get_variable.
func GlorotUniform(seed *int64) Initializer {
	return scaled(seed, func(in, out float64) float64 { return 1 / max(1, (in+out)/2) }, uniform)
}

// GlorotNormal is [GlorotUniform] with a truncated normal distribution.
func GlorotNormal(seed *int64) Initializer {
	return scaled(seed, func(in, out float64) float64 { return 1 / max(1, (in+out)/2) }, truncatedNormal)
}

// HeUniform draws elements uniformly within a bound that keeps the variance of signals from layer
// to layer in networks of rectified linear units (He et al., 2015).
func HeUniform(seed *int64) Initializer {
	return scaled(seed, func(in, _ float64) float64 { return 2 / max(1, in) }, uniform)
}

// HeNormal is [HeUniform] with a truncated normal distribution.
func HeNormal(seed *int64) Initializer {
	return scaled(seed, func(in, _ float64) float64 { return 2 / max(1, in) }, truncatedNormal)
}

// scaled makes an initializer of a variance that follows from the numbers of inputs and outputs of
// a unit.
func scaled(seed *int64, variance func(in, out float64) float64, draw func(variance float64, seed *int64) Initializer) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		in, out := fans(shape)
		return draw(variance(in, out), seed)(s, shape, dtype)
	}
}

func uniform(variance float64, seed *int64) Initializer {
	bound := math.Sqrt(3 * variance)
	return RandomUniform(-bound, bound, seed)
}

// truncatedStddev is the standard deviation of the normal distribution cut off at two standard
// deviations.
const truncatedStddev = .87962566103423978

func truncatedNormal(variance float64, seed *int64) Initializer {
	return TruncatedNormal(0, math.Sqrt(variance)/truncatedStddev, seed)
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

// dims adds a shape as a constant.
func dims(s *op.Scope, shape tensor.Shape) op.Output {
	v := make([]int32, len(shape))
	for i, d := range shape {
		v[i] = int32(d)
	}
	return op.Const(s.Named("shape"), v)
}
