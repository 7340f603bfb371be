package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// LayerNormalization scales the last dimension of each element of the batch to mean 0 and variance
// 1 (Ba et al., 2016).
type LayerNormalization struct {
	Epsilon  float64 // added to the variance; 1e-3 if 0
	NoCenter bool    // no variable "beta" is added
	NoScale  bool    // no variable "gamma" is multiplied
}

// Apply implements [Layer].
func (l *LayerNormalization) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "layer_normalization")
	s, channels := c.Scope, c.size(x, -1, -1)
	if channels == 0 {
		return op.Output{}
	}
	gamma, beta := scaleAndCenter(c, channels, l.NoScale, l.NoCenter)
	wide := widen(s, x)
	average, variance := moments(s, wide, true, s.ShapeOf(x).Rank()-1)
	return c.done(x, castLike(s, normalize(s, wide, average, variance, gamma, beta, orDefault(l.Epsilon, 1e-3)), x), true)
}

// GroupNormalization scales groups of channels of each element of the batch to mean 0 and variance
// 1 (Wu and He, 2018). The channels are the last dimension; statistics are also over the dimensions
// between batch and channels.
type GroupNormalization struct {
	Groups   int     // 32 if 0; it must divide the number of channels
	Epsilon  float64 // added to the variance; 1e-3 if 0
	NoCenter bool    // no variable "beta" is added
	NoScale  bool    // no variable "gamma" is multiplied
}

// Apply implements [Layer].
func (l *GroupNormalization) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "group_normalization")
	s, channels, groups := c.Scope, c.size(x, -1, -1), int64(l.Groups)
	if groups == 0 {
		groups = 32
	}
	switch {
	case channels == 0:
		return op.Output{}
	case groups < 0 || channels%groups != 0:
		c.fail("%d groups do not divide %d channels", groups, channels)
		return op.Output{}
	}
	gamma, beta := scaleAndCenter(c, channels, l.NoScale, l.NoCenter)
	wide, shape := widen(s, x), s.ShapeOf(x)
	grouped := reshapeLike(s, wide, x, shape, int(groups), int(channels/groups))
	axes := append(between(shape.Rank()-2), shape.Rank())
	average, variance := moments(s, grouped, true, axes...)
	y := normalize(s, grouped, average, variance, op.Output{}, op.Output{}, orDefault(l.Epsilon, 1e-3))
	y = reshapeLike(s, y, x, shape, int(channels))
	if gamma.Node != nil {
		y = op.Mul(s, y, gamma)
	}
	if beta.Node != nil {
		y = op.AddV2(s, y, beta)
	}
	return c.done(x, castLike(s, y, x), true)
}

// scaleAndCenter returns the variables of a normalization, zero Outputs for those that it lacks.
func scaleAndCenter(c *Context, channels int64, noScale, noCenter bool) (gamma, beta op.Output) {
	if !noScale {
		gamma = c.Variable(Weight{Name: "gamma", Shape: tensor.Shape{channels}, Init: train.Ones}).Value
	}
	if !noCenter {
		beta = c.Variable(Weight{Name: "beta", Shape: tensor.Shape{channels}, Init: train.Zeros}).Value
	}
	return gamma, beta
}

// widen converts x to float32.
func widen(s *op.Scope, x op.Output) op.Output {
	if x.Node == nil || x.DType().Base() == tensor.Float32 {
		return x
	}
	return op.Cast(s, x, tensor.Float32)
}
