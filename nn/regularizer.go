package nn

import "github.com/weft-ml/weft/op"

// A Regularizer adds a scalar to the loss that depends on a variable.
type Regularizer func(s *op.Scope, w op.Output) op.Output

// L1 returns the regularizer factor * sum |w|.
func L1(factor float64) Regularizer {
	return func(s *op.Scope, w op.Output) op.Output {
		return op.Mul(s, like(s, w, factor), sumAll(s, op.Abs(s, w)))
	}
}

// L2 returns the regularizer factor * sum w².
func L2(factor float64) Regularizer {
	return func(s *op.Scope, w op.Output) op.Output {
		return op.Mul(s, like(s, w, factor), sumAll(s, op.Square(s, w)))
	}
}

// L1L2 returns the sum of [L1] and [L2].
func L1L2(l1, l2 float64) Regularizer {
	return func(s *op.Scope, w op.Output) op.Output { return op.AddV2(s, L1(l1)(s, w), L2(l2)(s, w)) }
}
