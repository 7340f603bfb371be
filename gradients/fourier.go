package gradients

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Without its scale factor, a transform is its own adjoint except for the sign of the exponent.
func init() {
	for k, suffix := range []string{"", "2D", "3D"} {
		rank := k + 1
		Register(func(c *Call) []Grad {
			return c.first(op.Mul(c.S, c.transform("IFFT"+suffix, c.DY(0)), elements(c, c.DY(0), rank)))
		}, "FFT"+suffix)
		Register(func(c *Call) []Grad {
			return c.first(op.RealDiv(c.S, c.transform("FFT"+suffix, c.DY(0)), elements(c, c.DY(0), rank)))
		}, "IFFT"+suffix)
		Register(func(c *Call) []Grad { return realTransformGrad(c, "IFFT"+suffix, rank) }, "RFFT"+suffix)
		Register(func(c *Call) []Grad { return inverseRealTransformGrad(c, "RFFT"+suffix, rank) }, "IRFFT"+suffix)
	}
}

// transform adds a transform of complex values.
func (c *Call) transform(name string, x op.Output) op.Output {
	return output(c.S.Add(name, args(x), nil), 0)
}

// elements returns the number of elements of x in one transform, as a value of its type.
func elements(c *Call, x op.Output, rank int) op.Output {
	s := c.S
	return op.Cast(s, op.Prod(s, innerDims(s, x, rank), op.Const(s, []int32{0})), x.DType())
}

// innerDims returns the sizes of the last rank dimensions of x.
func innerDims(s *op.Scope, x op.Output, rank int) op.Output {
	return op.StridedSlice(s, op.Shape(s, x), op.Const(s, []int32{int32(-rank)}), op.Const(s, []int32{0}), op.Const(s, []int32{1}),
		op.StridedSliceEndMask(1))
}

// realTransformGrad differentiates a transform of real values, which returns half of the spectrum.
// It extends the gradient to the whole spectrum and takes the real part of the result.
func realTransformGrad(c *Call, inverse string, rank int) []Grad {
	s := c.S
	whole := padInner(s, c.DY(0), c.In(1), rank)
	dx := op.Mul(s, c.transform(inverse, whole), elements(c, whole, rank))
	return c.first(padInner(s, realOf(s, dx), innerDims(s, c.In(0), rank), rank))
}

// inverseRealTransformGrad differentiates by the half of a spectrum. Its columns also represent
// their conjugates and count twice, except for the first one and, for an even size, the last one.
func inverseRealTransformGrad(c *Call, forward string, rank int) []Grad {
	s, dy := c.S, c.DY(0)
	half := output(c.S.Add(forward, args(dy, c.In(1)), opdef.Attrs{"Tcomplex": c.In(0).DType().Base()}), 0)
	zero, one, two := op.Const(s, int32(0)), op.Const(s, int32(1)), op.Const(s, int32(2))
	last := op.Reshape(s, innerDims(s, dy, 1), op.Const(s, []int32{}))
	column := op.Range(s, zero, op.AddV2(s, op.FloorDiv(s, last, two), one), one)
	alone := op.LogicalOr(s, op.Equal(s, column, zero), op.Equal(s, op.Mul(s, column, two), last))
	count := op.Cast(s, op.SelectV2(s, alone, one, two), half.DType())
	dx := op.RealDiv(s, op.Mul(s, half, count), op.Cast(s, elements(c, dy, rank), half.DType()))
	return c.first(padInner(s, dx, innerDims(s, c.In(0), rank), rank))
}

// padInner pads the last dimensions of x with zeros to the given sizes.
func padInner(s *op.Scope, x, sizes op.Output, rank int) op.Output {
	more := op.Sub(s, op.Cast(s, sizes, tensor.Int32), innerDims(s, x, rank))
	inner := op.Pack(s, []op.Output{op.ZerosLike(s, more), more}, op.PackAxis(1))
	outer := op.Fill(s, op.Pack(s, []op.Output{op.Sub(s, op.Rank(s, x), op.Const(s, int32(rank))), op.Const(s, int32(2))}), op.Const(s, int32(0)))
	return op.Pad(s, x, op.ConcatV2(s, []op.Output{outer, inner}, op.Const(s, int32(0))))
}
