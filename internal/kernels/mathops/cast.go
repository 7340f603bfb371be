package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Cast",
		Doc: "Converts each element to type DstT. With Truncate, conversions to a narrower " +
			"floating-point type truncate instead of round.",
		In: []string{"x: SrcT"}, Out: []string{"y: DstT"},
		Attrs: []string{"SrcT: type", "DstT: type", "Truncate: bool = false"}, Shape: opdef.SameShape,
	}, newCast)
}

// convert converts elements lo to hi of src into dst.
type convert func(dst, src *tensor.Tensor, lo, hi int)

func newCast(c *kernel.Construction) (kernel.Kernel, error) {
	src, dst := c.Attrs.Type("SrcT"), c.Attrs.Type("DstT")
	if src == dst {
		return kernel.Func(func(ctx *kernel.Context) error { return ctx.PassInput(0, 0) }), nil
	}
	conv := conversion(src, dst)
	if c.Attrs.Bool("Truncate") && src == tensor.Float32 && dst == tensor.BFloat16 {
		conv = each(func(v float32) tensor.BFloat16Elem { return tensor.BFloat16Elem(math.Float32bits(v) >> 16) })
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

// each converts one element after another.
func each[S, D tensor.Elem](f func(S) D) convert {
	return loop(func(z []D, x []S) {
		for i, v := range x {
			z[i] = f(v)
		}
	})
}

// loop converts slices of equal length.
func loop[S, D tensor.Elem](f func(z []D, x []S)) convert {
	return func(dst, src *tensor.Tensor, lo, hi int) {
		f(tensor.Values[D](dst)[lo:hi], tensor.Values[S](src)[lo:hi])
	}
}

func conversion(src, dst tensor.DType) convert {
	if conv := throughInts(src, dst); conv != nil {
		return conv
	}
	if dst == tensor.Bool {
		if conv := truths(src); conv != nil {
			return conv
		}
	}
	switch src {
	case tensor.Bool:
		return fromBool(conversion(tensor.Uint8, dst))
	case tensor.Int8:
		return fromInteger[int8](dst)
	case tensor.Int16:
		return fromInteger[int16](dst)
	case tensor.Int32:
		switch dst {
		case tensor.Float32:
			return loop(simd.FromInt32)
		case tensor.Int64:
			return loop(simd.Int64FromInt32)
		}
		return fromInteger[int32](dst)
	case tensor.Int64:
		switch dst {
		case tensor.Float32:
			return loop(simd.FromInt64)
		case tensor.Int32:
			return loop(simd.Int32FromInt64)
		}
		return fromInteger[int64](dst)
	case tensor.Uint8:
		return fromInteger[uint8](dst)
	case tensor.Uint16:
		return fromInteger[uint16](dst)
	case tensor.Uint32:
		return fromInteger[uint32](dst)
	case tensor.Uint64:
		return fromInteger[uint64](dst)
	case tensor.Float32:
		switch dst {
		case tensor.Int32:
			return loop(simd.ToInt32)
		case tensor.Int64:
			return loop(simd.ToInt64)
		case tensor.Float64:
			return loop(simd.ToDouble)
		}
		return fromFloat[float32](dst)
	case tensor.Float64:
		if dst == tensor.Float32 {
			return loop(simd.FromDouble)
		}
		return fromFloat[float64](dst)
	case tensor.Float16:
		if dst == tensor.Float32 {
			return loop(elementwise.Widen[tensor.Float16Elem])
		}
		return fromElems(dst, tensor.Float16Elem.Float32)
	case tensor.BFloat16:
		if dst == tensor.Float32 {
			return loop(elementwise.Widen[tensor.BFloat16Elem])
		}
		return fromElems(dst, tensor.BFloat16Elem.Float32)
	case tensor.Complex64:
		return fromComplex(dst, func(v complex64) complex128 { return complex128(v) })
	case tensor.Complex128:
		return fromComplex(dst, func(v complex128) complex128 { return v })
	case tensor.QInt8:
		return fromElems(dst, func(v tensor.QInt8Elem) int8 { return int8(v) })
	case tensor.QUint8:
		return fromElems(dst, func(v tensor.QUint8Elem) uint8 { return uint8(v) })
	case tensor.QInt16:
		return fromElems(dst, func(v tensor.QInt16Elem) int16 { return int16(v) })
	case tensor.QUint16:
		return fromElems(dst, func(v tensor.QUint16Elem) uint16 { return uint16(v) })
	case tensor.QInt32:
		return fromElems(dst, func(v tensor.QInt32Elem) int32 { return int32(v) })
	case tensor.Float8E5M2:
		return fromElems(dst, func(v tensor.Float8E5M2Elem) float32 { return e5m2.values[v] })
	case tensor.Float8E4M3:
		return fromElems(dst, func(v tensor.Float8E4M3Elem) float32 { return e4m3.values[v] })
	case tensor.Int4:
		return fromElems(dst, func(v tensor.Int4Elem) int8 { return int8(v) })
	case tensor.Uint4:
		return fromElems(dst, func(v tensor.Uint4Elem) uint8 { return uint8(v) })
	default:
		return nil
	}
}

// realElem is the constraint of real numeric element types.
type realElem interface {
	elementwise.Real
	tensor.Elem
}

// fromBool converts booleans through their bytes, 0 and 1.
func fromBool(conv convert) convert {
	if conv == nil {
		return nil
	}
	return func(dst, src *tensor.Tensor, lo, hi int) {
		bytes, err := src.WithDType(tensor.Uint8)
		if err != nil {
			panic(err)
		}
		conv(dst, &bytes, lo, hi)
	}
}

func fromInteger[S wholeNumber](dst tensor.DType) convert {
	switch dst {
	case tensor.Int8:
		return loop(plain[S, int8])
	case tensor.Int16:
		return loop(plain[S, int16])
	case tensor.Int32:
		return loop(plain[S, int32])
	case tensor.Int64:
		return loop(plain[S, int64])
	case tensor.Uint8:
		return loop(plain[S, uint8])
	case tensor.Uint16:
		return loop(plain[S, uint16])
	case tensor.Uint32:
		return loop(plain[S, uint32])
	case tensor.Uint64:
		return loop(plain[S, uint64])
	}
	return fromReal[S](dst)
}

func fromFloat[S elementwise.Float](dst tensor.DType) convert {
	switch dst {
	case tensor.Int8:
		return loop(truncate[S, int8](math.MinInt32, math.MaxInt32))
	case tensor.Int16:
		return loop(truncate[S, int16](math.MinInt32, math.MaxInt32))
	case tensor.Int32:
		return loop(truncate[S, int32](math.MinInt32, math.MaxInt32))
	case tensor.Int64:
		return loop(truncate[S, int64](math.MinInt64, math.MaxInt64))
	case tensor.Uint8:
		return loop(truncate[S, uint8](math.MinInt32, math.MaxInt32))
	case tensor.Uint16:
		return loop(truncate[S, uint16](math.MinInt32, math.MaxInt32))
	case tensor.Uint32:
		return loop(truncate[S, uint32](math.MinInt64, math.MaxInt64))
	}
	return fromReal[S](dst)
}

// fromReal returns the conversions that are the same for integers and floating-point numbers.
func fromReal[S realElem](dst tensor.DType) convert {
	switch dst {
	case tensor.Float32:
		return loop(plain[S, float32])
	case tensor.Float64:
		return loop(plain[S, float64])
	case tensor.Float16:
		return toShort[S, tensor.Float16Elem]()
	case tensor.BFloat16:
		return toShort[S, tensor.BFloat16Elem]()
	}
	return fromElems(dst, func(v S) S { return v })
}

func plain[S, D elementwise.Real](z []D, x []S) {
	for i, v := range x {
		z[i] = D(v)
	}
}

func truncate[S elementwise.Float, D elementwise.Integer](lo, hi int64) func(z []D, x []S) {
	return func(z []D, x []S) {
		for i, v := range x {
			z[i] = D(toInt(v, lo, hi))
		}
	}
}

// scratchLen is the number of elements per block of a conversion through float32 or int32.
const scratchLen = 512

func toShort[S realElem, H elementwise.Short]() convert {
	return loop(func(z []H, x []S) {
		var scratch [scratchLen]float32
		for lo := 0; lo < len(x); lo += scratchLen {
			n := min(scratchLen, len(x)-lo)
			if wide, ok := any(x).([]float32); ok {
				elementwise.Narrow(z[lo:lo+n], wide[lo:lo+n])
				continue
			}
			plain(scratch[:n], x[lo:lo+n])
			elementwise.Narrow(z[lo:lo+n], scratch[:n])
		}
	})
}

// fromElems converts elements of type S through a numeric type N.
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
		return each(func(v S) tensor.Float16Elem { return tensor.Float16Of(float32(number(v))) })
	case tensor.BFloat16:
		return each(func(v S) tensor.BFloat16Elem { return tensor.BFloat16Of(float32(number(v))) })
	case tensor.Complex64:
		return each(func(v S) complex64 { return complex(float32(number(v)), 0) })
	case tensor.Complex128:
		return each(func(v S) complex128 { return complex(float64(number(v)), 0) })
	case tensor.QInt8:
		return each(func(v S) tensor.QInt8Elem { return tensor.QInt8Elem(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.QUint8:
		return each(func(v S) tensor.QUint8Elem { return tensor.QUint8Elem(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.QInt16:
		return each(func(v S) tensor.QInt16Elem { return tensor.QInt16Elem(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	case tensor.QUint16:
		return each(func(v S) tensor.QUint16Elem {
			return tensor.QUint16Elem(toInt(number(v), math.MinInt32, math.MaxInt32))
		})
	case tensor.Float8E5M2:
		return each(func(v S) tensor.Float8E5M2Elem { return tensor.Float8E5M2Elem(e5m2.of(float64(number(v)))) })
	case tensor.Float8E4M3:
		return each(func(v S) tensor.Float8E4M3Elem { return tensor.Float8E4M3Elem(e4m3.of(float64(number(v)))) })
	case tensor.QInt32:
		return each(func(v S) tensor.QInt32Elem { return tensor.QInt32Elem(toInt(number(v), math.MinInt32, math.MaxInt32)) })
	default:
		return nil
	}
}

// toInt truncates a number toward zero. NaN and numbers out of range become the smallest integer of
// the width that x86 conversion instructions use, as in TensorFlow. The caller narrows the result
// with wrap-around.
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

// fromComplex converts complex elements. Conversions to real types drop the imaginary part.
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
