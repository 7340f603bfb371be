package math

import (
	"math"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/parallel"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Cast",
			Doc: "Converts every element to type DstT. Truncate makes conversions to a narrower floating type drop bits instead " +
				"of rounding.",
			In: []string{"x: SrcT"}, Out: []string{"y: DstT"},
			Attrs: []string{"SrcT: type", "DstT: type", "Truncate: bool = false"}, Shape: opdef.SameShape,
		},
		Kernels: kernel.Any(newCast),
	})
}

// convert sets the elements of dst from position lo to hi to those of src.
type convert func(dst, src *tensor.Tensor, lo, hi int)

func newCast(c *kernel.Construction) (kernel.Kernel, error) {
	src, dst := c.Attrs.Type("SrcT"), c.Attrs.Type("DstT")
	if src == dst {
		return kernel.Func(func(ctx *kernel.Context) error { return ctx.PassInput(0, 0) }), nil
	}
	conv := conversion(src, dst)
	if c.Attrs.Bool("Truncate") && src == tensor.Float32 && dst == tensor.BFloat16 {
		conv = each(func(v float32) tensor.BFloat { return tensor.BFloat(math.Float32bits(v) >> 16) })
	}
	if conv == nil {
		return nil, status.Unimplementedf("Cast %v to %v is not supported", src, dst)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		parallel.For(in.NumElements(), elementwise.Grain(cheap), func(lo, hi int) { conv(out, in, lo, hi) })
		return nil
	}), nil
}

func each[S, D tensor.Elem](f func(S) D) convert {
	return func(dst, src *tensor.Tensor, lo, hi int) {
		x, z := tensor.Values[S](src)[lo:hi], tensor.Values[D](dst)[lo:hi]
		for i, v := range x {
			z[i] = f(v)
		}
	}
}

func conversion(src, dst tensor.DType) convert {
	switch src {
	case tensor.Bool:
		return fromElems(dst, func(v bool) int8 {
			if v {
				return 1
			}
			return 0
		})
	case tensor.Int8:
		return fromNumber[int8](dst)
	case tensor.Int16:
		return fromNumber[int16](dst)
	case tensor.Int32:
		return fromNumber[int32](dst)
	case tensor.Int64:
		return fromNumber[int64](dst)
	case tensor.Uint8:
		return fromNumber[uint8](dst)
	case tensor.Uint16:
		return fromNumber[uint16](dst)
	case tensor.Uint32:
		return fromNumber[uint32](dst)
	case tensor.Uint64:
		return fromNumber[uint64](dst)
	case tensor.Float32:
		return fromNumber[float32](dst)
	case tensor.Float64:
		return fromNumber[float64](dst)
	case tensor.Float16:
		return fromElems(dst, tensor.Half.Float32)
	case tensor.BFloat16:
		return fromElems(dst, tensor.BFloat.Float32)
	case tensor.Complex64:
		return fromComplex(dst, func(v complex64) complex128 { return complex128(v) })
	case tensor.Complex128:
		return fromComplex(dst, func(v complex128) complex128 { return v })
	case tensor.QInt8:
		return fromElems(dst, func(v tensor.QI8) int8 { return int8(v) })
	case tensor.QUint8:
		return fromElems(dst, func(v tensor.QU8) uint8 { return uint8(v) })
	case tensor.QInt32:
		return fromElems(dst, func(v tensor.QI32) int32 { return int32(v) })
	case tensor.Int4:
		return fromElems(dst, func(v tensor.Nibble) int8 { return int8(v) })
	case tensor.Uint4:
		return fromElems(dst, func(v tensor.UNibble) uint8 { return uint8(v) })
	default:
		return nil
	}
}

func fromNumber[S interface {
	elementwise.Real
	tensor.Elem
}](dst tensor.DType) convert {
	return fromElems(dst, func(v S) S { return v })
}

// fromElems converts elements of type S by way of a number type N.
func fromElems[S tensor.Elem, N elementwise.Real](dst tensor.DType, number func(S) N) convert {
	switch dst {
	case tensor.Bool:
		return each(func(v S) bool { return number(v) != 0 })
	case tensor.Int8:
		return each(func(v S) int8 { return int8(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.Int16:
		return each(func(v S) int16 { return int16(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.Int32:
		return each(func(v S) int32 { return int32(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.Int64:
		return each(func(v S) int64 { return toInt(number(v), math.MinInt64, math.MaxInt64) })
	case tensor.Uint8:
		return each(func(v S) uint8 { return uint8(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.Uint16:
		return each(func(v S) uint16 { return uint16(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.Uint32:
		return each(func(v S) uint32 { return uint32(toInt(number(v), math.MinInt64, math.MaxInt64)) })
	case tensor.Uint64:
		return each(func(v S) uint64 { return uint64(number(v)) })
	case tensor.Float32:
		return each(func(v S) float32 { return float32(number(v)) })
	case tensor.Float64:
		return each(func(v S) float64 { return float64(number(v)) })
	case tensor.Float16:
		return each(func(v S) tensor.Half { return tensor.HalfOf(float32(number(v))) })
	case tensor.BFloat16:
		return each(func(v S) tensor.BFloat { return tensor.BFloatOf(float32(number(v))) })
	case tensor.Complex64:
		return each(func(v S) complex64 { return complex(float32(number(v)), 0) })
	case tensor.Complex128:
		return each(func(v S) complex128 { return complex(float64(number(v)), 0) })
	case tensor.QInt8:
		return each(func(v S) tensor.QI8 { return tensor.QI8(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.QUint8:
		return each(func(v S) tensor.QU8 { return tensor.QU8(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.QInt32:
		return each(func(v S) tensor.QI32 { return tensor.QI32(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	default:
		return nil
	}
}

// toInt truncates a number. One that does not fit, or is none, becomes the smallest integer of the width that x86
// processors convert through, as in TensorFlow; integers wrap around when they are narrowed afterwards.
func toInt[N elementwise.Real](v N, lo, hi int64) int64 {
	if f := float64(v); isFloat[N]() && !(f >= float64(lo) && f < float64(hi)+1) {
		return lo
	}
	return int64(v)
}

func isFloat[N elementwise.Real]() bool {
	var one, two N = 1, 2
	return one/two != 0
}

// fromComplex converts complex elements: to a real type the imaginary part is dropped.
func fromComplex[S tensor.Elem](dst tensor.DType, wide func(S) complex128) convert {
	switch dst {
	case tensor.Complex64:
		return each(func(v S) complex64 { return complex64(wide(v)) })
	case tensor.Complex128:
		return each(wide)
	case tensor.Bool:
		return each(func(v S) bool { return wide(v) != 0 })
	default:
		return fromElems(dst, func(v S) float64 { return real(wide(v)) })
	}
}
