package summary

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// floats returns the elements of a numeric or bool tensor.
func floats(t *tensor.Tensor) ([]float64, error) {
	switch t.DType() {
	case tensor.Float64:
		return tensor.Values[float64](t), nil
	case tensor.Float32:
		return each(t, func(v float32) float64 { return float64(v) }), nil
	case tensor.Float16:
		return each(t, func(v tensor.Float16Elem) float64 { return float64(v.Float32()) }), nil
	case tensor.BFloat16:
		return each(t, func(v tensor.BFloat16Elem) float64 { return float64(v.Float32()) }), nil
	case tensor.Int8:
		return each(t, number[int8]), nil
	case tensor.Int16:
		return each(t, number[int16]), nil
	case tensor.Int32:
		return each(t, number[int32]), nil
	case tensor.Int64:
		return each(t, number[int64]), nil
	case tensor.Uint8:
		return each(t, number[uint8]), nil
	case tensor.Uint16:
		return each(t, number[uint16]), nil
	case tensor.Uint32:
		return each(t, number[uint32]), nil
	case tensor.Uint64:
		return each(t, number[uint64]), nil
	case tensor.Bool:
		return each(t, func(v bool) float64 {
			if v {
				return 1
			}
			return 0
		}), nil
	default:
		return nil, status.InvalidArgumentf("a summary of numbers cannot be of type %v", t.DType())
	}
}

func number[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v T) float64 {
	return float64(v)
}

func each[T tensor.Elem](t *tensor.Tensor, f func(T) float64) []float64 {
	vals := tensor.Values[T](t)
	out := membudget.Make[float64](len(vals))
	for i, v := range vals {
		out[i] = f(v)
	}
	return out
}
