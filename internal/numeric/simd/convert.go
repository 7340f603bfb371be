package simd

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// vector is a number of elements that fills whole vectors at every level.
const vector = 16

// conversion is a map from one type to another. The assembly handles whole vectors only.
type conversion[D, S any] struct {
	asm levels[func(dst *D, src *S, n int)]
}

// run converts whole vectors with the assembly and returns the number of converted elements.
func (k *conversion[D, S]) run(dst []D, src []S) int {
	whole := len(dst) &^ (vector - 1)
	src = src[:len(dst)]
	l := Current()
	if l == Generic || k.asm[l-1] == nil {
		return 0
	}
	for i := 0; i < whole; i += piece {
		bulk.SafePoint()
		k.asm[l-1](&dst[i], &src[i], min(piece, whole-i))
	}
	return whole
}

var (
	fromUint8  conversion[float32, uint8]
	fromInt8   conversion[float32, int8]
	toBytes    conversion[uint8, float32]
	fromInt32  conversion[float32, int32]
	toInt32    conversion[int32, float32]
	fromHalf   conversion[float32, uint16]
	toHalf     conversion[uint16, float32]
	fromBFloat conversion[float32, uint16]
	toBFloat   conversion[uint16, float32]
	toDouble   conversion[float64, float32]
	fromDouble conversion[float32, float64]
	fromLong   conversion[float32, int64]
	toLong     conversion[int64, float32]

	longFromInt conversion[int64, int32]
	intFromLong conversion[int32, int64]

	longFromUint8 conversion[int64, uint8]
)

// FromUint8 converts src to dst.
func FromUint8(dst []float32, src []uint8) {
	for i := fromUint8.run(dst, src); i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// FromInt8 converts src to dst.
func FromInt8(dst []float32, src []int8) {
	for i := fromInt8.run(dst, src); i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// ToBytes sets dst to the low bytes of src truncated to int32, or to 0 where src does not fit an
// int32.
func ToBytes(dst []uint8, src []float32) {
	for i := toBytes.run(dst, src); i < len(dst); i++ {
		dst[i] = 0
		if x := src[i]; x >= math.MinInt32 && x < -math.MinInt32 {
			dst[i] = uint8(int32(x))
		}
	}
}

// FromInt32 converts src to dst, with rounding.
func FromInt32(dst []float32, src []int32) {
	for i := fromInt32.run(dst, src); i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// ToInt32 truncates src to dst. The result is the smallest integer where src does not fit.
func ToInt32(dst []int32, src []float32) {
	for i := toInt32.run(dst, src); i < len(dst); i++ {
		if x := src[i]; x >= math.MinInt32 && x < -math.MinInt32 {
			dst[i] = int32(x)
		} else {
			dst[i] = math.MinInt32
		}
	}
}

// FromInt64 converts src to dst, with rounding.
func FromInt64(dst []float32, src []int64) {
	for i := fromLong.run(dst, src); i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

// ToInt64 truncates src to dst. The result is the smallest integer where src does not fit.
func ToInt64(dst []int64, src []float32) {
	for i := toLong.run(dst, src); i < len(dst); i++ {
		if x := src[i]; x >= math.MinInt64 && x < -math.MinInt64 {
			dst[i] = int64(x)
		} else {
			dst[i] = math.MinInt64
		}
	}
}

// Int64FromInt32 converts src to dst.
func Int64FromInt32(dst []int64, src []int32) {
	for i := longFromInt.run(dst, src); i < len(dst); i++ {
		dst[i] = int64(src[i])
	}
}

// Int64FromUint8 converts src to dst.
func Int64FromUint8(dst []int64, src []uint8) {
	for i := longFromUint8.run(dst, src); i < len(dst); i++ {
		dst[i] = int64(src[i])
	}
}

// Int32FromInt64 sets dst to the low halves of src.
func Int32FromInt64(dst []int32, src []int64) {
	for i := intFromLong.run(dst, src); i < len(dst); i++ {
		dst[i] = int32(src[i])
	}
}

// Short is a 16-bit floating-point type.
type Short interface {
	~uint16
	Float32() float32
}

// FromHalf converts numbers of half precision (IEEE 754 binary16).
func FromHalf[H Short](dst []float32, src []H) {
	for i := fromHalf.run(dst, bits16(src)); i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
}

// ToHalf rounds src to half precision. one converts a single number.
func ToHalf[H Short](dst []H, src []float32, one func(float32) H) {
	for i := toHalf.run(bits16(dst), src); i < len(dst); i++ {
		dst[i] = one(src[i])
	}
}

// FromBFloat converts bfloat16 numbers, the upper halves of float32.
func FromBFloat[H Short](dst []float32, src []H) {
	for i := fromBFloat.run(dst, bits16(src)); i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
}

// ToBFloat rounds src to bfloat16, the upper halves of float32. one converts a single number.
func ToBFloat[H Short](dst []H, src []float32, one func(float32) H) {
	for i := toBFloat.run(bits16(dst), src); i < len(dst); i++ {
		dst[i] = one(src[i])
	}
}

func bits16[H ~uint16](x []H) []uint16 { return *(*[]uint16)(unsafe.Pointer(&x)) }

// ToDouble converts src to dst.
func ToDouble(dst []float64, src []float32) {
	for i := toDouble.run(dst, src); i < len(dst); i++ {
		dst[i] = float64(src[i])
	}
}

// FromDouble converts src to dst, with rounding.
func FromDouble(dst []float32, src []float64) {
	for i := fromDouble.run(dst, src); i < len(dst); i++ {
		dst[i] = float32(src[i])
	}
}

func bytesOf(x []bool) []uint8 { return *(*[]uint8)(unsafe.Pointer(&x)) }
