package simd

import (
	"math"
	"testing"
)

// spread returns integers of all magnitudes.
func spread[T int8 | uint8 | int16 | uint16 | int32](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(i*i*i*0x9e3779b1 - i)
	}
	return x
}

// doubles returns numbers around the bounds of the integer types, and others.
func doubles(n int) []float64 {
	x := make([]float64, n)
	odd := []float64{
		math.MinInt32, math.MinInt32 - 0.5, math.MinInt32 - 1, math.MaxInt32 + 0.5, math.MaxInt32 + 1, -0.5, 1.9, -1.9,
		math.MinInt64, math.MaxInt64, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), 5e15, -5e15,
	}
	for i := range x {
		x[i] = odd[i*7%len(odd)]
		if i%3 == 0 {
			x[i] = float64(i) * 1234.567
		}
	}
	return x
}

func equal[T comparable](a, b T) bool { return a == b }

func TestWidths(t *testing.T) {
	atLevels(t, func(t *testing.T) {
		same(t, spread[int8], WidenInt8, equal)
		same(t, spread[uint8], WidenUint8, equal)
		same(t, spread[int16], WidenInt16, equal)
		same(t, spread[uint16], WidenUint16, equal)
		same(t, spread[int32], Narrow8, equal)
		same(t, spread[int32], Narrow16, equal)
		same(t, spread[int32], DoubleFromInt32, equal)
		same(t, doubles, Int32FromDouble, equal)
		same(t, doubles, Int64FromDouble, equal)
	})
}
