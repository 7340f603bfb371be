package gradients

import "github.com/weft-ml/weft/op"

// conj returns the conjugate of a complex value, and other values as they are. Gradients of complex
// functions use the conjugate derivative.
func conj(s *op.Scope, x op.Output) op.Output {
	if x.DType().Base().IsComplex() {
		return op.Conj(s, x)
	}
	return x
}

// number returns a scalar constant of the type of x.
func number(s *op.Scope, x op.Output, v float64) op.Output {
	return op.ConstOf(s, x.DType().Base(), v)
}

// unary returns the rule of a function of one input. derivative returns dy times the derivative,
// given dy, x and y.
func unary(derivative func(s *op.Scope, dy, x, y op.Output) op.Output) Rule {
	return func(c *Call) []Grad {
		return List(derivative(c.S, c.DY(0), conj(c.S, c.In(0)), conj(c.S, c.Out(0))))
	}
}

// binary returns the rule of a function of two inputs that broadcast against each other. partial
// returns the gradients before they are summed over the broadcast dimensions.
func binary(partial func(s *op.Scope, dz, x, y, z op.Output) (dx, dy op.Output)) Rule {
	return func(c *Call) []Grad {
		s := c.S
		dx, dy := partial(s, c.DY(0), conj(s, c.In(0)), conj(s, c.In(1)), conj(s, c.Out(0)))
		return List(unbroadcast(s, c.In(0), c.In(1), dx, dy))
	}
}

// unbroadcast sums gradients over the dimensions in which x and y were broadcast against each
// other. A zero Output stays zero.
func unbroadcast(s *op.Scope, x, y, dx, dy op.Output) (sx, sy op.Output) {
	knownX, fullX := s.ShapeOf(x).Full()
	knownY, fullY := s.ShapeOf(y).Full()
	if fullX && fullY && knownX.Equal(knownY) {
		return dx, dy
	}
	shapeX, shapeY := op.Shape(s, x), op.Shape(s, y)
	rx, ry := op.BroadcastGradientArgs(s, shapeX, shapeY)
	back := func(d, axes, shape op.Output) op.Output {
		if d.Node == nil {
			return d
		}
		return op.Reshape(s, op.Sum(s, d, axes), shape)
	}
	return back(dx, rx, shapeX), back(dy, ry, shapeY)
}
