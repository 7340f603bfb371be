package simd

import "math"

var (
	wideInt8       conversion[int32, int8]
	wideUint8      conversion[int32, uint8]
	wideInt16      conversion[int32, int16]
	wideUint16     conversion[int32, uint16]
	narrow8        conversion[uint8, int32]
	narrow16       conversion[uint16, int32]
	doubleFromInt  conversion[float64, int32]
	intFromDouble  conversion[int32, float64]
	longFromDouble conversion[int64, float64]
)

// WidenInt8 converts src to dst.
func WidenInt8(dst []int32, src []int8) { widen(&wideInt8, dst, src) }

// WidenUint8 converts src to dst.
func WidenUint8(dst []int32, src []uint8) { widen(&wideUint8, dst, src) }

// WidenInt16 converts src to dst.
func WidenInt16(dst []int32, src []int16) { widen(&wideInt16, dst, src) }

// WidenUint16 converts src to dst.
func WidenUint16(dst []int32, src []uint16) { widen(&wideUint16, dst, src) }

func widen[S int8 | uint8 | int16 | uint16](k *conversion[int32, S], dst []int32, src []S) {
	for i := k.run(dst, src); i < len(dst); i++ {
		dst[i] = int32(src[i])
	}
}

// Narrow8 sets dst to the low bytes of src.
func Narrow8(dst []uint8, src []int32) {
	for i := narrow8.run(dst, src); i < len(dst); i++ {
		dst[i] = uint8(src[i])
	}
}

// Narrow16 sets dst to the low halves of src.
func Narrow16(dst []uint16, src []int32) {
	for i := narrow16.run(dst, src); i < len(dst); i++ {
		dst[i] = uint16(src[i])
	}
}

// DoubleFromInt32 converts src to dst.
func DoubleFromInt32(dst []float64, src []int32) {
	for i := doubleFromInt.run(dst, src); i < len(dst); i++ {
		dst[i] = float64(src[i])
	}
}

// Int32FromDouble truncates src to dst. The result is the smallest integer where src does not fit.
func Int32FromDouble(dst []int32, src []float64) {
	for i := intFromDouble.run(dst, src); i < len(dst); i++ {
		if x := src[i]; x > math.MinInt32-1 && x < -math.MinInt32 {
			dst[i] = int32(x)
		} else {
			dst[i] = math.MinInt32
		}
	}
}

// Int64FromDouble truncates src to dst. The result is the smallest integer where src does not fit.
func Int64FromDouble(dst []int64, src []float64) {
	for i := longFromDouble.run(dst, src); i < len(dst); i++ {
		if x := src[i]; x >= math.MinInt64 && x < -math.MinInt64 {
			dst[i] = int64(x)
		} else {
			dst[i] = math.MinInt64
		}
	}
}
