package nn

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// LecunNormal returns the initializer that draws elements from a truncated normal distribution with
// variance 1 / inputs (LeCun et al., 1998).
func LecunNormal(opts ...train.RandomOption) train.Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		return train.TruncatedNormal(0, math.Sqrt(1/inputs(shape))/truncatedStddev, opts...)(s, shape, dtype)
	}
}

// LecunUniform returns the initializer that draws elements from a uniform distribution with
// variance 1 / inputs (LeCun et al., 1998).
func LecunUniform(opts ...train.RandomOption) train.Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		bound := math.Sqrt(3 / inputs(shape))
		return train.RandomUniform(-bound, bound, opts...)(s, shape, dtype)
	}
}

// truncatedStddev is the standard deviation of the standard normal distribution truncated at two
// standard deviations.
const truncatedStddev = .87962566103423978

// inputs returns the number of inputs of a unit whose weights have the given shape.
func inputs(shape tensor.Shape) float64 {
	switch len(shape) {
	case 0:
		return 1
	case 1:
		return float64(shape[0])
	}
	return max(1, float64(prod(shape[:len(shape)-1])))
}

// Orthogonal returns the initializer of matrices whose columns or rows, whichever are fewer, are
// orthonormal, times gain (Saxe et al., 2014). Shapes of more dimensions are matrices whose columns
// are the last dimension.
func Orthogonal(gain float64, opts ...train.RandomOption) train.Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		if len(shape) < 2 {
			s.Fail(status.InvalidArgumentf("nn: an orthogonal initializer needs at least two dimensions, got shape %v", shape))
			return op.Output{}
		}
		rows, cols := prod(shape[:len(shape)-1]), shape[len(shape)-1]
		flat := tensor.Shape{max(rows, cols), min(rows, cols)}
		q, r := op.Qr(s, train.RandomNormal(0, 1, opts...)(s, flat, dtype))
		// with the signs of the diagonal of r the distribution is uniform
		q = op.Mul(s, q, op.Sign(s, op.MatrixDiagPart(s, r)))
		if rows < cols {
			q = transpose(s, q, 1, 0)
		}
		dims := make([]int, len(shape))
		for i, d := range shape {
			dims[i] = int(d)
		}
		return op.Mul(s, reshape(s, q, dims...), like(s, q, gain))
	}
}

// or returns the initializer unless it is nil, and otherwise the default.
func or(init, byDefault train.Initializer) train.Initializer {
	if init != nil {
		return init
	}
	return byDefault
}
