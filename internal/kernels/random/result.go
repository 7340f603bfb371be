package random

import (
	"math"

	"github.com/weft-ml/weft/tensor"
)

// result describes the conversion of samples to an element type.
type result[T tensor.Elem] struct {
	of       func(v float64) T
	largest  float64
	infinity T // replaces infinite samples
}

// Element types of samples.
var (
	asHalf    = result[tensor.Float16Elem]{func(v float64) tensor.Float16Elem { return tensor.Float16Of(float32(v)) }, 65504, 0x7c00}
	asBFloat  = result[tensor.BFloat16Elem]{func(v float64) tensor.BFloat16Elem { return tensor.BFloat16Of(float32(v)) }, 0x1.fep127, 0x7f80}
	asFloat32 = result[float32]{func(v float64) float32 { return float32(v) }, math.MaxFloat32, float32(math.Inf(1))}
	asFloat64 = result[float64]{func(v float64) float64 { return v }, math.MaxFloat64, math.Inf(1)}
	asInt32   = result[int32]{func(v float64) int32 { return int32(toInt(v, math.MinInt32)) }, math.MaxInt32, 0}
	asInt64   = result[int64]{func(v float64) int64 { return toInt(v, math.MinInt64) }, math.MaxInt64, 0}
)

// toInt truncates v. It converts NaN to lowest, as x86 processors do.
func toInt(v float64, lowest int64) int64 {
	if v != v {
		return lowest
	}
	return int64(v)
}
