package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Dropout sets elements to zero at random in training, with probability Rate, and divides the
// others by 1 - Rate. The shape of the output is that of the input.
type Dropout struct{ Rate float64 }

// Apply implements [Layer].
func (l *Dropout) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "dropout")
	if l.Rate < 0 || l.Rate >= 1 {
		c.fail("the rate %v is not in [0, 1)", l.Rate)
		return op.Output{}
	}
	return c.done(x, c.drop(x, l.Rate), true)
}

// drop drops elements of x in training.
func (c *Context) drop(x op.Output, rate float64) op.Output {
	if !c.Training || rate == 0 || x.Node == nil {
		return x
	}
	s := c.Scope.SubScope("drop")
	s1, s2 := s.Seeds(nil)
	u := op.RandomUniform(s, op.Shape(s, x), tensor.Float32, op.RandomUniformSeed(s1), op.RandomUniformSeed2(s2))
	keep := op.GreaterEqual(s, u, op.ConstOf(s, tensor.Float32, rate))
	return op.Mul(s, op.Mul(s, x, like(s, x, 1/(1-rate))), castLike(s, keep, x))
}

// GaussianNoise adds normal noise in training.
type GaussianNoise struct{ Stddev float64 }

// Apply implements [Layer].
func (l *GaussianNoise) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "gaussian_noise")
	if !c.Training || x.Node == nil {
		return c.done(x, op.Identity(c.Scope, x), true)
	}
	s1, s2 := c.Scope.Seeds(nil)
	noise := op.RandomStandardNormal(c.Scope, op.Shape(c.Scope, x), x.DType(), op.RandomStandardNormalSeed(s1), op.RandomStandardNormalSeed2(s2))
	return c.done(x, op.AddV2(c.Scope, x, op.Mul(c.Scope, noise, like(c.Scope, x, l.Stddev))), true)
}
