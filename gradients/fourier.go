package gradients

import (
	"github.com/weft-ml/weft/op"
)

// A transform without its factor is its own adjoint but for the sign of the exponent.
func init() {
	for rank, suffix := range []string{1: "", 2: "2D", 3: "3D"} {
		if rank == 0 {
			continue
		}
		Register(func(c *Call) []Grad {
			return c.first(op.Mul(c.S, output(c.like("IFFT"+suffix, c.DY(0)), 0), transformed(c, rank)))
		}, "FFT"+suffix)
		Register(func(c *Call) []Grad {
			return c.first(op.RealDiv(c.S, output(c.like("FFT"+suffix, c.DY(0)), 0), transformed(c, rank)))
		}, "IFFT"+suffix)
	}
}

// transformed returns the number of elements that are transformed together.
func transformed(c *Call, rank int) op.Output {
	s := c.S
	inner := op.StridedSlice(s, op.Shape(s, c.DY(0)), op.Const(s, []int32{int32(-rank)}), op.Const(s, []int32{0}), op.Const(s, []int32{1}),
		op.StridedSliceEndMask(1))
	return op.Cast(s, op.Prod(s, inner, op.Const(s, []int32{0})), c.DY(0).DType())
}
