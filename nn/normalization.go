package nn

import (
	"math"

	"github.com/weft-ml/weft/op"
)

// Normalization subtracts a mean from the input and divides it by a standard deviation, for each
// component of its last dimension, so that inputs of any scale become about 1. The numbers are part
// of the model; package data computes them from the training data.
type Normalization struct {
	Mean, Variance []float32
}

// Apply implements [Layer].
func (l *Normalization) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "normalization")
	s := c.Scope
	n := c.size(x, -1, -1)
	if n == 0 {
		return op.Output{}
	}
	if int64(len(l.Mean)) != n || int64(len(l.Variance)) != n {
		c.fail("a mean of %d and a variance of %d components for inputs of %d", len(l.Mean), len(l.Variance), n)
		return op.Output{}
	}
	deviation := make([]float32, n)
	for i, v := range l.Variance {
		deviation[i] = float32(max(math.Sqrt(float64(v)), epsilon))
	}
	x = widen(s, x)
	return c.done(x, op.RealDiv(s, op.Sub(s, x, op.Const(s, l.Mean)), op.Const(s, deviation)), true)
}

// Rescaling converts its input to float32 and computes x * Scale + Offset. With a scale of 1.0/255
// the values of images become 0 to 1.
type Rescaling struct{ Scale, Offset float64 }

// Apply implements [Layer].
func (l *Rescaling) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "rescaling")
	s := c.Scope
	y := op.Mul(s, widen(s, x), op.Const(s, float32(l.Scale)))
	if l.Offset != 0 {
		y = op.AddV2(s, y, op.Const(s, float32(l.Offset)))
	}
	return c.done(x, y, true)
}
