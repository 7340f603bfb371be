package train

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// An Initializer adds nodes that compute the initial value of a variable of the given shape and
// type. Random initializers draw the same numbers as TensorFlow's initializers of the same name
// with the same seeds. Their elements must be of a floating-point type.
type Initializer func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output

// A RandomOption configures a random initializer.
type RandomOption func(*randomConfig)

type randomConfig struct{ seed *int64 }

// Seed sets the operation-level seed of a random initializer. Without it the numbers depend on the
// seed of the graph ([op.Scope.SetSeed]), and differ in each session if that is not set either.
func Seed(seed int64) RandomOption { return func(c *randomConfig) { c.seed = &seed } }

// seedOf returns the seed that options set, nil for none.
func seedOf(opts []RandomOption) *int64 {
	var c randomConfig
	for _, o := range opts {
		o(&c)
	}
	return c.seed
}

// Zeros is the initializer that sets all elements to zero.
func Zeros(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(0)(s.Named("zeros"), shape, dtype)
}

// Ones is the initializer that sets all elements to one.
func Ones(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
	return Constant(1)(s.Named("ones"), shape, dtype)
}

// Constant returns the initializer that sets all elements to v.
func Constant(v float64) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("Const")
		return op.Fill(result, dims(s, shape), op.ConstOf(s, dtype, v))
	}
}

// Values returns the initializer with a fixed value, anything that [tensor.New] accepts. Its shape
// and type must be those of the variable.
func Values(v any) Initializer {
	return func(s *op.Scope, _ tensor.Shape, _ tensor.DType) op.Output { return op.Const(s, v) }
}

// RandomUniform returns the initializer that draws elements from the uniform distribution over
// [lo, hi).
func RandomUniform(lo, hi float64, opts ...RandomOption) Initializer {
	seed := seedOf(opts)
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("random_uniform")
		s1, s2 := s.Seeds(seed)
		u := op.RandomUniform(s, dims(s, shape), dtype, op.RandomUniformSeed(s1), op.RandomUniformSeed2(s2))
		low := op.ConstOf(s.Named("min"), dtype, lo)
		return op.AddV2(result, op.Mul(s, u, op.Sub(s, op.ConstOf(s.Named("max"), dtype, hi), low)), low)
	}
}

// RandomNormal returns the initializer that draws elements from the normal distribution.
func RandomNormal(mean, stddev float64, opts ...RandomOption) Initializer {
	seed := seedOf(opts)
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("random_normal")
		s1, s2 := s.Seeds(seed)
		x := op.RandomStandardNormal(s, dims(s, shape), dtype, op.RandomStandardNormalSeed(s1), op.RandomStandardNormalSeed2(s2))
		return op.AddV2(result, op.Mul(s, x, op.ConstOf(s.Named("stddev"), dtype, stddev)), op.ConstOf(s.Named("mean"), dtype, mean))
	}
}

// TruncatedNormal returns the initializer that draws elements from the normal distribution without
// the values more than two standard deviations from the mean.
func TruncatedNormal(mean, stddev float64, opts ...RandomOption) Initializer {
	seed := seedOf(opts)
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		s, result := s.Composite("truncated_normal")
		s1, s2 := s.Seeds(seed)
		x := op.TruncatedNormal(s, dims(s, shape), dtype, op.TruncatedNormalSeed(s1), op.TruncatedNormalSeed2(s2))
		return op.AddV2(result, op.Mul(s, x, op.ConstOf(s.Named("stddev"), dtype, stddev)), op.ConstOf(s.Named("mean"), dtype, mean))
	}
}

// GlorotUniform returns the initializer that draws elements uniformly within a bound that keeps the
// variance of activations and gradients the same from layer to layer (Glorot and Bengio, 2010). It
// is the default of TensorFlow's get_variable.
func GlorotUniform(opts ...RandomOption) Initializer {
	return scaled(glorot, uniform, opts)
}

// GlorotNormal is [GlorotUniform] with a truncated normal distribution.
func GlorotNormal(opts ...RandomOption) Initializer {
	return scaled(glorot, truncatedNormal, opts)
}

// HeUniform returns the initializer that draws elements uniformly within a bound that keeps the
// variance of activations the same from layer to layer in networks of rectified linear units (He et
// al., 2015).
func HeUniform(opts ...RandomOption) Initializer {
	return scaled(he, uniform, opts)
}

// HeNormal is [HeUniform] with a truncated normal distribution.
func HeNormal(opts ...RandomOption) Initializer {
	return scaled(he, truncatedNormal, opts)
}

// glorot returns the variance of Glorot and Bengio for a unit with the given numbers of inputs and
// outputs.
func glorot(in, out float64) float64 { return 1 / max(1, (in+out)/2) }

// he returns the variance of He et al.
func he(in, _ float64) float64 { return 2 / max(1, in) }

// scaled returns an initializer whose variance depends on the shape of the variable.
func scaled(
	variance func(in, out float64) float64, draw func(variance float64, opts []RandomOption) Initializer, opts []RandomOption,
) Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		in, out := fans(shape)
		return draw(variance(in, out), opts)(s, shape, dtype)
	}
}

func uniform(variance float64, opts []RandomOption) Initializer {
	bound := math.Sqrt(3 * variance)
	return RandomUniform(-bound, bound, opts...)
}

// truncatedStddev is the standard deviation of the standard normal distribution truncated at two
// standard deviations.
const truncatedStddev = .87962566103423978

func truncatedNormal(variance float64, opts []RandomOption) Initializer {
	return TruncatedNormal(0, math.Sqrt(variance)/truncatedStddev, opts...)
}

// fans returns the number of inputs and outputs of a unit whose weights have the given shape. The
// last two dimensions are the inputs and outputs, those before them a receptive field.
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
