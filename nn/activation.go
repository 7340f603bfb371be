package nn

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// An Activation adds a function of x to the graph; all but [Softmax] and [LogSoftmax] are applied
// to each element. The nil Activation is the identity.
type Activation func(s *op.Scope, x op.Output) op.Output

// apply applies the activation, which may be nil.
func (a Activation) apply(s *op.Scope, x op.Output) op.Output {
	if a == nil || x.Node == nil {
		return x
	}
	return a(s, x)
}

// ReLU is max(x, 0).
func ReLU(s *op.Scope, x op.Output) op.Output { return op.Relu(s, x) }

// ReLU6 is min(max(x, 0), 6).
func ReLU6(s *op.Scope, x op.Output) op.Output { return op.Relu6(s, x) }

// LeakyReLU returns the activation with the given slope for negative x. Keras's default slope is
// 0.2.
func LeakyReLU(slope float64) Activation {
	return func(s *op.Scope, x op.Output) op.Output { return op.LeakyRelu(s, x, op.LeakyReluAlpha(float32(slope))) }
}

// Sigmoid is 1 / (1 + exp(-x)).
func Sigmoid(s *op.Scope, x op.Output) op.Output { return op.Sigmoid(s, x) }

// Tanh is the hyperbolic tangent.
func Tanh(s *op.Scope, x op.Output) op.Output { return op.Tanh(s, x) }

// Softmax is exp(x) divided by its sum over the last dimension.
func Softmax(s *op.Scope, x op.Output) op.Output { return op.Softmax(s, x) }

// LogSoftmax is the logarithm of [Softmax].
func LogSoftmax(s *op.Scope, x op.Output) op.Output { return op.LogSoftmax(s, x) }

// Softplus is log(1 + exp(x)).
func Softplus(s *op.Scope, x op.Output) op.Output { return op.Softplus(s, x) }

// Softsign is x / (1 + |x|).
func Softsign(s *op.Scope, x op.Output) op.Output { return op.Softsign(s, x) }

// ELU is x for positive x and exp(x) - 1 for others.
func ELU(s *op.Scope, x op.Output) op.Output { return op.Elu(s, x) }

// SELU is [ELU] with the scales of self-normalizing networks (Klambauer et al., 2017).
func SELU(s *op.Scope, x op.Output) op.Output { return op.Selu(s, x) }

// Exponential is exp(x).
func Exponential(s *op.Scope, x op.Output) op.Output { return op.Exp(s, x) }

// SiLU is x * sigmoid(x), also called swish.
func SiLU(s *op.Scope, x op.Output) op.Output { return op.Mul(s, x, op.Sigmoid(s, x)) }

// HardSigmoid is min(max(x/6 + 1/2, 0), 1).
func HardSigmoid(s *op.Scope, x op.Output) op.Output {
	return op.Mul(s, op.Relu6(s, op.AddV2(s, x, like(s, x, 3))), like(s, x, 1.0/6))
}

// Mish is x * tanh(softplus(x)).
func Mish(s *op.Scope, x op.Output) op.Output { return op.Mul(s, x, op.Tanh(s, op.Softplus(s, x))) }

// GELU is x times the distribution function of the normal distribution at x.
func GELU(s *op.Scope, x op.Output) op.Output {
	if x.Node == nil {
		return x
	}
	if x.DType() == tensor.BFloat16 { // Erf has no kernel for it
		return op.Cast(s, GELU(s, op.Cast(s, x, tensor.Float32)), tensor.BFloat16)
	}
	e := op.Erf(s, op.Mul(s, x, like(s, x, 1/math.Sqrt2)))
	return op.Mul(s, op.Mul(s, x, like(s, x, 0.5)), op.AddV2(s, e, like(s, x, 1)))
}

// ActivationLayer is a layer of an activation alone.
type ActivationLayer struct{ Func Activation }

// Apply implements [Layer].
func (l *ActivationLayer) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "activation")
	return c.done(x, l.Func.apply(c.Scope, x), true)
}
