package philox

import (
	"math"

	"github.com/weft-ml/weft/tensor"
)

// Unit32 returns a number in [0, 1) from the lower 23 bits of x.
func Unit32(x uint32) float32 { return math.Float32frombits(127<<23|x&(1<<23-1)) - 1 }

// Unit64 returns a number in [0, 1) from the lower 20 bits of x0 and x1.
func Unit64(x0, x1 uint32) float64 {
	return math.Float64frombits(1023<<52|uint64(x0&(1<<20-1))<<32|uint64(x1)) - 1
}

// UnitHalf returns a number in [0, 1) from the lower 10 bits of x.
func UnitHalf(x uint32) tensor.Float16Elem {
	return tensor.Float16Of(tensor.Float16Elem(15<<10|x&(1<<10-1)).Float32() - 1)
}

// UnitBFloat returns a number in [0, 1) from the lower 7 bits of x.
func UnitBFloat(x uint32) tensor.BFloat16Elem {
	return tensor.BFloat16Of(tensor.BFloat16Elem(127<<7|x&(1<<7-1)).Float32() - 1)
}

func word64(x *[4]uint32, i int) uint64 { return uint64(x[2*i+1])<<32 | uint64(x[2*i]) }

// Uniform distributions over [0, 1).
var (
	UniformHalf   = outputs(4, 40, each4(UnitHalf))
	UniformBFloat = outputs(4, 40, each4(UnitBFloat))
	Uniform32     = mapped(2, units)
	Uniform64     = outputs(2, 20, func(x *[4]uint32, out []float64) {
		out[0], out[1] = Unit64(x[0], x[1]), Unit64(x[2], x[3])
	})
)

func each4[T any](f func(uint32) T) func(x *[4]uint32, out []T) {
	return func(x *[4]uint32, out []T) {
		for i := range out {
			out[i] = f(x[i])
		}
	}
}

// UniformInt32 returns the distribution over [lo, hi) that reduces a word modulo the range.
func UniformInt32[T ~int32 | ~uint32](lo, hi T) *Distribution[T] {
	span := uint32(hi) - uint32(lo)
	return outputs(4, 25, each4(func(x uint32) T { return lo + T(x%span) }))
}

// UniformInt64 returns the distribution over [lo, hi) that reduces two words modulo the range.
func UniformInt64[T ~int64 | ~uint64](lo, hi T) *Distribution[T] {
	span := uint64(hi) - uint64(lo)
	return outputs(2, 30, func(x *[4]uint32, out []T) {
		for i := range out {
			out[i] = lo + T(word64(x, i)%span)
		}
	})
}

// FullInt32 returns the distribution over all values of T.
func FullInt32[T ~int32 | ~uint32]() *Distribution[T] {
	return outputs(4, 20, each4(func(x uint32) T { return T(x) }))
}

// FullInt64 returns the distribution over all values of T.
func FullInt64[T ~int64 | ~uint64]() *Distribution[T] {
	return outputs(2, 20, func(x *[4]uint32, out []T) {
		for i := range out {
			out[i] = T(word64(x, i))
		}
	})
}
