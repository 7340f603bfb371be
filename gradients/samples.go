package gradients

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Samples of distributions are differentiated implicitly by their parameters: M. Figurnov, S.
// Mohamed and A. Mnih, "Implicit Reparameterization Gradients" (2018).
func init() {
	for name, alpha := range map[string]int{"RandomGamma": 1, "StatelessRandomGammaV2": 2, "StatelessRandomGammaV3": 4} {
		Register(func(c *Call) []Grad {
			d := op.Mul(c.S, c.DY(0), op.RandomGammaGrad(c.S, c.In(alpha), c.Out(0)))
			grads := c.None()
			grads[alpha] = Of(sumTo(c.S, d, c.In(alpha)))
			return grads
		}, name)
	}
	Register(truncatedNormalGrad, "StatelessParameterizedTruncatedNormal")
}

// truncatedNormalGrad moves a sample so that it stays at the same quantile between the bounds.
func truncatedNormalGrad(c *Call) []Grad {
	s, mean, deviation, x, dy := c.S, c.In(2), c.In(3), c.Out(0), c.DY(0)
	standard := func(x op.Output) op.Output { return op.RealDiv(s, op.Sub(s, x, mean), deviation) }
	below := func(z op.Output) op.Output { // distribution function of the normal distribution
		return op.Mul(s, number(s, z, 0.5), op.Erfc(s, op.Mul(s, number(s, z, -math.Sqrt2/2), z)))
	}
	low, high, z := standard(c.In(4)), standard(c.In(5)), standard(x)
	quantile := op.RealDiv(s, op.Sub(s, below(z), below(low)), op.Sub(s, below(high), below(low)))
	least, precision := limitsOf(mean.DType())
	quantile = op.ClipByValue(s, quantile, number(s, z, least), number(s, z, 1-precision))
	// ratio of the density at the bound to that at the sample
	density := func(bound op.Output) op.Output {
		return op.Exp(s, op.Mul(s, number(s, z, 0.5), op.Sub(s, op.Square(s, z), op.Square(s, bound))))
	}
	grads := c.None()
	for i, slope := range []op.Output{
		op.OnesLike(s, z), z, op.Mul(s, density(low), op.Sub(s, number(s, z, 1), quantile)), op.Mul(s, density(high), quantile),
	} {
		grads[2+i] = Of(sumTo(s, op.Mul(s, dy, slope), c.In(2+i)))
	}
	return grads
}

// limitsOf returns the smallest normal number of a floating-point type, and the distance from one
// to the next number.
func limitsOf(t tensor.DType) (least, precision float64) {
	switch t.Base() {
	case tensor.Float64:
		return 0x1p-1022, 0x1p-52
	case tensor.Float16:
		return 0x1p-14, 0x1p-10
	default:
		return 0x1p-126, 0x1p-23
	}
}
