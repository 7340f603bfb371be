package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// Dense is a fully connected layer: activation(x · kernel + bias). Its input has shape [batch, …,
// inputs], its output [batch, …, Units].
type Dense struct {
	Units      int
	Activation Activation
	NoBias     bool

	KernelInit        train.Initializer // [train.GlorotUniform] if nil
	BiasInit          train.Initializer // [train.Zeros] if nil
	KernelRegularizer Regularizer
	KernelConstraint  Constraint
}

// Apply implements [Layer].
func (l *Dense) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "dense")
	in := c.size(x, -1, -1)
	if l.Units < 1 {
		c.fail("the layer has %d units", l.Units)
	}
	if in == 0 || l.Units < 1 {
		return op.Output{}
	}
	units := int64(l.Units)
	kernel := c.Weight(Weight{
		Name: "kernel", Shape: tensor.Shape{in, units}, Init: or(l.KernelInit, train.GlorotUniform()),
		Regularizer: l.KernelRegularizer, Constraint: l.KernelConstraint,
	})
	y := matMul(c.Scope, c.cast(x), kernel)
	if !l.NoBias {
		y = op.BiasAdd(c.Scope, y, c.Weight(Weight{Name: "bias", Shape: tensor.Shape{units}, Init: or(l.BiasInit, train.Zeros)}))
	}
	return c.done(x, l.Activation.apply(c.Scope, y), true)
}

// matMul multiplies the last dimension of x with the first of a matrix.
func matMul(s *op.Scope, x, w op.Output) op.Output {
	if x.Node == nil || w.Node == nil {
		return op.Output{}
	}
	shape := s.ShapeOf(x)
	if shape.Rank() == 2 {
		return op.MatMul(s, x, w)
	}
	in, units := s.ShapeOf(w).Dim(0), s.ShapeOf(w).Dim(1)
	y := op.MatMul(s, reshape(s, x, -1, int(in)), w)
	return reshapeLike(s, y, x, shape, int(units))
}

// reshapeLike gives the rows of y the leading dimensions of x, whose shape is given, followed by
// the sizes last.
func reshapeLike(s *op.Scope, y, x op.Output, shape tensor.PartialShape, last ...int) op.Output {
	dims, unknown := make([]int, 0, shape.Rank()+len(last)), 0
	for i := range shape.Rank() - 1 {
		d := int(shape.Dim(i))
		if d < 0 {
			unknown++
		}
		dims = append(dims, d)
	}
	dims = append(dims, last...)
	if unknown <= 1 {
		return reshape(s, y, dims...)
	}
	parts := make([]op.Output, len(dims))
	for i, d := range dims {
		if parts[i] = op.Const(s, int32(d)); d < 0 {
			parts[i] = dim(s, x, i)
		}
	}
	y = op.Reshape(s, y, op.Pack(s, parts))
	known := make([]int64, len(dims))
	for i, d := range dims {
		known[i] = int64(d)
	}
	return op.EnsureShape(s, y, tensor.MakePartial(known...))
}
