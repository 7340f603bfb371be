package mathops

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/tensor"
)

// throughInts returns the vector conversion between two types through int32, or nil if int32 cannot
// represent the values.
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
		return shortInts(dst, intsOfShorts[tensor.Float16Elem])
	case tensor.BFloat16:
		return shortInts(dst, intsOfShorts[tensor.BFloat16Elem])
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

// fromInts returns the conversion that applies ints and converts its result to dst. ints is exact.
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

// shortInts is fromInts for destinations narrower than int32.
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

// inTwo applies two conversions with an int32 result in between, one block at a time.
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

// truths returns the conversion to bool for types that vector code can compare with zero, or nil.
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
