package imageops

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// pixels returns the elements of a numeric tensor as float32. For a float32 tensor they share its
// memory.
func pixels(t *tensor.Tensor) []float32 {
	switch t.DType() {
	case tensor.Float32:
		return tensor.Values[float32](t)
	case tensor.Float64:
		return via(simd.FromDouble, tensor.Values[float64](t))
	case tensor.Float16:
		return widened(tensor.Values[tensor.Float16Elem](t))
	case tensor.BFloat16:
		return widened(tensor.Values[tensor.BFloat16Elem](t))
	case tensor.Uint8:
		return via(simd.FromUint8, tensor.Values[uint8](t))
	case tensor.Uint16:
		return converted[float32](tensor.Values[uint16](t))
	case tensor.Int8:
		return converted[float32](tensor.Values[int8](t))
	case tensor.Int16:
		return converted[float32](tensor.Values[int16](t))
	case tensor.Int32:
		return via(simd.FromInt32, tensor.Values[int32](t))
	case tensor.Int64:
		return converted[float32](tensor.Values[int64](t))
	}
	panic(fmt.Sprintf("imageops: unsupported pixel type %v", t.DType()))
}

func converted[To, From number](src []From) []To {
	dst := membudget.Make[To](len(src))
	for i, v := range src {
		dst[i] = To(v)
	}
	return dst
}

// via converts the elements of src to float32.
func via[From number](convert func(dst []float32, src []From), src []From) []float32 {
	dst := membudget.Make[float32](len(src))
	convert(dst, src)
	return dst
}

func widened[H elementwise.Short](src []H) []float32 {
	dst := membudget.Make[float32](len(src))
	elementwise.Widen(dst, src)
	return dst
}

// scratch returns zeroed float32 elements for a floating-point tensor t. For a float32 tensor they
// are the elements of t. Pass them to store when they are complete.
func scratch(t *tensor.Tensor) []float32 {
	if t.DType() != tensor.Float32 {
		return membudget.Make[float32](t.NumElements())
	}
	v := tensor.Values[float32](t)
	clear(v)
	return v
}

// store converts vals, which scratch returned for t, to the elements of t.
func store(t *tensor.Tensor, vals []float32) {
	switch t.DType() {
	case tensor.Float16:
		elementwise.Narrow(tensor.Values[tensor.Float16Elem](t), vals)
	case tensor.BFloat16:
		elementwise.Narrow(tensor.Values[tensor.BFloat16Elem](t), vals)
	case tensor.Float64:
		for i, v := range vals {
			tensor.Values[float64](t)[i] = float64(v)
		}
	}
}
