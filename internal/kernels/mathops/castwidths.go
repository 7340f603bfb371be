package mathops

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// throughInts returns the conversion between two types by way of int32, in vector code, or nil
// where int32 does not hold what it must.
func throughInts(src, dst tensor.DType) convert {
	switch src {
	case tensor.Int8:
		if dst == tensor.Float32 {
			return loop(simd.FromInt8)
		}
		return fromInts(dst, simd.WidenInt8)
	case tensor.Uint8:
		switch dst {
		case tensor.Float32:
			return loop(simd.FromUint8)
		case tensor.Int64:
			return loop(simd.Int64FromUint8)
		}
		return fromInts(dst, simd.WidenUint8)
	case tensor.Int16:
		return fromInts(dst, simd.WidenInt16)
	case tensor.Uint16:
		return fromInts(dst, simd.WidenUint16)
	case tensor.Float16:
		return shortInts(dst, intsOfShorts[tensor.Half])
	case tensor.BFloat16:
		return shortInts(dst, intsOfShorts[tensor.BFloat])
	case tensor.Float32:
		switch dst {
		case tensor.Int8:
			return loop(func(z []int8, x []float32) { simd.ToBytes(bytesOf(z), x) })
		case tensor.Uint8:
			return loop(simd.ToBytes)
		}
		return shortInts(dst, simd.ToInt32)
	case tensor.Float64:
		switch dst {
		case tensor.Int32:
			return loop(simd.Int32FromDouble)
		case tensor.Int64:
			return loop(simd.Int64FromDouble)
		}
		return shortInts(dst, simd.Int32FromDouble)
	case tensor.Int32:
		if dst == tensor.Float64 {
			return loop(simd.DoubleFromInt32)
		}
		return shortInts(dst, func(z, x []int32) { copy(z, x) })
	}
	return nil
}

// fromInts goes on with what ints makes of elements. Its integers are exact.
func fromInts[S tensor.Elem](dst tensor.DType, ints func(z []int32, x []S)) convert {
	switch dst {
	case tensor.Int32:
		return loop(ints)
	case tensor.Int64:
		return inTwo(ints, simd.Int64FromInt32)
	case tensor.Float32:
		return inTwo(ints, simd.FromInt32)
	case tensor.Float64:
		return inTwo(ints, simd.DoubleFromInt32)
	}
	return shortInts(dst, ints)
}

// shortInts goes on to the integers that are narrower.
func shortInts[S tensor.Elem](dst tensor.DType, ints func(z []int32, x []S)) convert {
	switch dst {
	case tensor.Int8:
		return inTwo(ints, func(z []int8, x []int32) { simd.Narrow8(bytesOf(z), x) })
	case tensor.Uint8:
		return inTwo(ints, simd.Narrow8)
	case tensor.Int16:
		return inTwo(ints, func(z []int16, x []int32) { simd.Narrow16(*(*[]uint16)(unsafe.Pointer(&z)), x) })
	case tensor.Uint16:
		return inTwo(ints, simd.Narrow16)
	}
	return nil
}

func bytesOf(z []int8) []uint8 { return *(*[]uint8)(unsafe.Pointer(&z)) }

// inTwo converts by way of int32, a block at a time.
func inTwo[S, D tensor.Elem](first func(z []int32, x []S), second func(z []D, x []int32)) convert {
	return loop(func(z []D, x []S) {
		var scratch [scratchLen]int32
		for len(x) > 0 {
			n := min(scratchLen, len(x))
			first(scratch[:n], x[:n])
			second(z[:n], scratch[:n])
			z, x = z[n:], x[n:]
		}
	})
}

func intsOfShorts[H elementwise.Short](z []int32, x []H) {
	var wide [scratchLen]float32
	elementwise.Widen(wide[:len(x)], x)
	simd.ToInt32(z, wide[:len(x)])
}

// truths returns the conversion to truth values of the types that vector code compares with zero,
// or nil.
func truths(src tensor.DType) convert {
	switch src {
	case tensor.Float32:
		return loop(func(z []bool, x []float32) { simd.CompareScalar(simd.NotEqual, z, x, 0) })
	case tensor.Float64:
		return loop(func(z []bool, x []float64) { simd.CompareScalar(simd.NotEqual, z, x, 0) })
	case tensor.Int32:
		return loop(func(z []bool, x []int32) {
			var zeros [scratchLen]int32
			for lo := 0; lo < len(x); lo += scratchLen {
				n := min(scratchLen, len(x)-lo)
				simd.CompareInts(simd.NotEqual, z[lo:lo+n], x[lo:lo+n], zeros[:n])
			}
		})
	}
	return nil
}
