package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Complex numbers. The gradient of a real function of z is conj(df/dz): the derivatives by its real
// and imaginary parts.
func init() {
	Register(func(c *Call) []Grad {
		s := c.S
		return List(unbroadcast(s, c.In(0), c.In(1), realOf(s, c.DY(0)), imagOf(s, c.DY(0))))
	}, "Complex")
	Register(func(c *Call) []Grad { return List(complexOf(c.S, c.DY(0), number(c.S, c.DY(0), 0))) }, "Real")
	Register(func(c *Call) []Grad { return List(complexOf(c.S, number(c.S, c.DY(0), 0), c.DY(0))) }, "Imag")
	Register(func(c *Call) []Grad { return List(op.Conj(c.S, c.DY(0))) }, "Conj")
	Register(func(c *Call) []Grad {
		s, z := c.S, c.In(0)
		turned := op.Reciprocal(s, complexOf(s, imagOf(s, z), realOf(s, z)))
		return List(op.Neg(s, op.Mul(s, complexOf(s, c.DY(0), number(s, c.DY(0), 0)), turned)))
	}, "Angle")
	Register(func(c *Call) []Grad {
		s, dy, y := c.S, c.DY(0), c.Out(0)
		zero := number(s, dy, 0)
		return List(op.DivNoNan(s, op.Mul(s, complexOf(s, dy, zero), c.In(0)), complexOf(s, y, zero)))
	}, "ComplexAbs")
}

func complexOf(s *op.Scope, re, im op.Output) op.Output {
	if re.DType() == tensor.Float64 {
		return op.Complex(s, re, im, op.ComplexTout(tensor.Complex128))
	}
	return op.Complex(s, re, im)
}

func realOf(s *op.Scope, z op.Output) op.Output {
	if z.DType() == tensor.Complex128 {
		return op.Real(s, z, op.RealTout(tensor.Float64))
	}
	return op.Real(s, z)
}

func imagOf(s *op.Scope, z op.Output) op.Output {
	if z.DType() == tensor.Complex128 {
		return op.Imag(s, z, op.ImagTout(tensor.Float64))
	}
	return op.Imag(s, z)
}
