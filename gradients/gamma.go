package gradients

import "github.com/weft-ml/weft/op"

// Samples of the gamma distribution are differentiated implicitly: M. Figurnov, S. Mohamed and A. Mnih, "Implicit
// Reparameterization Gradients" (2018).
func init() {
	for name, alpha := range map[string]int{"RandomGamma": 1, "StatelessRandomGammaV2": 2, "StatelessRandomGammaV3": 4} {
		Register(func(c *Call) []Grad {
			d := op.Mul(c.S, c.DY(0), op.RandomGammaGrad(c.S, c.In(alpha), c.Out(0)))
			grads := c.None()
			grads[alpha] = Of(sumTo(c.S, d, c.In(alpha)))
			return grads
		}, name)
	}
}
