// Package intarg reads the integer inputs of kernels, of any integer type: sizes, axes,
// permutations and indices.
package intarg

import (
	"fmt"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Integer is the constraint of Go types that represent integer DTypes.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Values returns the elements of an integer tensor, or nil for other types. The result shares
// memory with an int64 tensor.
func Values(t *tensor.Tensor) []int64 {
	if t.DType() == tensor.Int64 {
		return tensor.Values[int64](t)
	}
	out := membudget.Make[int64](t.NumElements())
	if !Read(out, t, 0) {
		return nil
	}
	return out
}

// Read copies elements lo to lo+len(dst) of an integer tensor. It reports false for other types.
func Read(dst []int64, t *tensor.Tensor, lo int) bool {
	switch t.DType() {
	case tensor.Int64:
		copy(dst, tensor.Values[int64](t)[lo:])
	case tensor.Int32:
		widen(dst, tensor.Values[int32](t)[lo:])
	case tensor.Int16:
		widen(dst, tensor.Values[int16](t)[lo:])
	case tensor.Int8:
		widen(dst, tensor.Values[int8](t)[lo:])
	case tensor.Uint8:
		widen(dst, tensor.Values[uint8](t)[lo:])
	case tensor.Uint16:
		widen(dst, tensor.Values[uint16](t)[lo:])
	case tensor.Uint32:
		widen(dst, tensor.Values[uint32](t)[lo:])
	case tensor.Uint64:
		widen(dst, tensor.Values[uint64](t)[lo:])
	default:
		return false
	}
	return true
}

func widen[I Integer](dst []int64, src []I) {
	for i := range dst {
		dst[i] = int64(src[i])
	}
}

// Scalar returns the first element of a non-empty integer tensor.
func Scalar(t *tensor.Tensor) int64 {
	var v [1]int64
	Read(v[:], t, 0)
	return v[0]
}

// Set sets the elements of an integer tensor to vals.
func Set(t *tensor.Tensor, vals []int64) {
	switch t.DType() {
	case tensor.Int64:
		copy(tensor.Values[int64](t), vals)
	case tensor.Int32:
		narrow(tensor.Values[int32](t), vals)
	case tensor.Int16:
		narrow(tensor.Values[int16](t), vals)
	case tensor.Int8:
		narrow(tensor.Values[int8](t), vals)
	case tensor.Uint8:
		narrow(tensor.Values[uint8](t), vals)
	case tensor.Uint16:
		narrow(tensor.Values[uint16](t), vals)
	case tensor.Uint32:
		narrow(tensor.Values[uint32](t), vals)
	case tensor.Uint64:
		narrow(tensor.Values[uint64](t), vals)
	default:
		panic(fmt.Sprintf("intarg: %v is not an integer type", t.DType()))
	}
}

func narrow[I Integer](dst []I, src []int64) {
	for i, v := range src {
		dst[i] = I(v)
	}
}

// Axis converts an axis that may count from the end to one that counts from the front. It reports
// whether the axis is within the rank.
func Axis(axis int64, rank int) (int, bool) {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis), axis >= 0 && axis < int64(rank)
}

// Shape returns dims as a shape. It returns InvalidArgument for negative dimensions and for too
// many elements.
func Shape(dims []int64) (tensor.Shape, error) {
	for _, d := range dims {
		if d < 0 {
			return nil, status.InvalidArgumentf("Dimension %d must be >= 0", d)
		}
	}
	shape := tensor.Shape(dims)
	err := shape.Check()
	if err != nil && len(shape) <= tensor.MaxRank {
		return nil, status.InvalidArgumentf("Shape %v would have more than 2**63 - 1 elements", shape)
	}
	return shape, err
}

// Position formats the coordinates of element i of a tensor of the given shape as error messages
// do: "[1,0]", or "" for a scalar.
func Position(shape tensor.Shape, i int) string {
	if len(shape) == 0 {
		return ""
	}
	at := make(tensor.Shape, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d] = int64(i) % shape[d]
		i /= int(shape[d])
	}
	return at.String()
}
