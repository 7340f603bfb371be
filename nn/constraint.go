package nn

import "github.com/weft-ml/weft/op"

// A Constraint adds the value that replaces that of a variable after each update.
type Constraint func(s *op.Scope, w op.Output) op.Output

// epsilon is the constant that Keras adds to divisors.
const epsilon = 1e-7

// MaxNorm returns the constraint that limits the L2 norm along the given dimensions of w. Keras's
// defaults are a limit of 2 and dimension 0, for the inputs of each unit of a dense layer.
func MaxNorm(limit float64, axes ...int) Constraint {
	return func(s *op.Scope, w op.Output) op.Output {
		norms := op.Sqrt(s, sum(s, op.Square(s, w), true, axes...))
		desired := op.Minimum(s, op.Maximum(s, norms, like(s, w, 0)), like(s, w, limit))
		return op.Mul(s, w, op.RealDiv(s, desired, op.AddV2(s, norms, like(s, w, epsilon))))
	}
}

// MinMaxNorm returns the constraint that moves the L2 norm along the given dimensions of w into
// [low, high], by the fraction rate of the way. Keras's defaults are 0, 1, 1 and dimension 0.
func MinMaxNorm(low, high, rate float64, axes ...int) Constraint {
	return func(s *op.Scope, w op.Output) op.Output {
		norms := op.Sqrt(s, sum(s, op.Square(s, w), true, axes...))
		clipped := op.Minimum(s, op.Maximum(s, norms, like(s, w, low)), like(s, w, high))
		desired := op.AddV2(s, op.Mul(s, like(s, w, rate), clipped), op.Mul(s, like(s, w, 1-rate), norms))
		return op.Mul(s, w, op.RealDiv(s, desired, op.AddV2(s, norms, like(s, w, epsilon))))
	}
}

// UnitNorm returns the constraint that makes the L2 norm along the given dimensions of w 1. Keras's
// default is dimension 0.
func UnitNorm(axes ...int) Constraint {
	return func(s *op.Scope, w op.Output) op.Output {
		norms := op.Sqrt(s, sum(s, op.Square(s, w), true, axes...))
		return op.RealDiv(s, w, op.AddV2(s, like(s, w, epsilon), norms))
	}
}

// NonNeg is the constraint that replaces negative elements by 0.
func NonNeg(s *op.Scope, w op.Output) op.Output { return op.Maximum(s, w, like(s, w, 0)) }
