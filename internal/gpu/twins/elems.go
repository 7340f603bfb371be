package twins

import (
	"math"

	"github.com/weft-ml/weft/tensor"
)

func init() {
	inf := math.Inf(1)
	f16 := elem[half, float64]{
		"f16", func(v half) float64 { return float64(tensor.Float16Elem(v).Float32()) },
		func(v float64) half { return half(tensor.Float16Of(float32(v))) }, true, -inf, inf,
	}
	bf16 := elem[half, float64]{
		"bf16", func(v half) float64 { return float64(tensor.BFloat16Elem(v).Float32()) },
		func(v float64) half { return half(tensor.BFloat16Of(float32(v))) }, true, -inf, inf,
	}
	f32 := elem[float32Bits, float64]{
		"f32", func(v float32Bits) float64 { return float64(math.Float32frombits(v)) },
		func(v float64) float32Bits { return math.Float32bits(float32(v)) }, true, -inf, inf,
	}
	f64 := elem[float64, float64]{"f64", same[float64], same[float64], true, -inf, inf}
	floats(f16)
	floats(bf16)
	floats(f32)
	floats(f64)
	cells(f16)
	cells(f32)
	topKeys(f16)
	topKeys(bf16)
	topKeys(f32)
	integers(plain[int8]("i8", math.MinInt8, math.MaxInt8))
	integers(plain[int16]("i16", math.MinInt16, math.MaxInt16))
	integers(plain[int32]("i32", math.MinInt32, math.MaxInt32))
	reals(plain[int64]("i64", math.MinInt64, math.MaxInt64))
	integers(plain[uint8]("u8", 0, math.MaxUint8))
	integers(plain[uint16]("u16", 0, math.MaxUint16))
	integers(plain[uint32]("u32", 0, math.MaxUint32))
	reals(plain[uint64]("u64", 0, math.MaxUint64))
	booleans(plain[uint8]("b8", 0, 1))
}

func same[T number](v T) T { return v }

// plain is an integer type, which is stored as it is computed with.
func plain[T number](name string, lowest, highest T) elem[T, T] {
	return elem[T, T]{name, same[T], same[T], false, lowest, highest}
}

// floats registers the kernels for a floating-point type.
func floats[S number](e elem[S, float64]) {
	reals(e)
	floatReductions(e)
	products(e)
	networks(e)
	floatRows(e)
	convolutions(e)
	images(e)
	normalizations(e)
}

// integers registers the kernels for an integer type of at most 32 bits.
func integers[T number](e elem[T, T]) {
	reals(e)
	topKeys(e)
}

// reals registers the kernels for a real type.
func reals[S, C number](e elem[S, C]) {
	reductions(e)
	positions(e)
	scans(e)
	scatters(e)
	bias(e)
}

func booleans(e elem[uint8, uint8]) {
	reduction(e, "all", func(*elem[uint8, uint8]) uint8 { return 1 }, same[uint8], func(p, q uint8) uint8 { return p & q })
	reduction(e, "any", func(*elem[uint8, uint8]) uint8 { return 0 }, same[uint8], func(p, q uint8) uint8 { return p | q })
	positions(e)
}
