// Package typeset defines the sets of element types that kernels are registered for.
package typeset

import (
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// The sets, each in a fixed order.
var (
	Floats    = []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}
	Complex   = []tensor.DType{tensor.Complex64, tensor.Complex128}
	Signed    = []tensor.DType{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}
	Unsigned  = []tensor.DType{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	Quantized = []tensor.DType{tensor.QInt8, tensor.QUint8, tensor.QInt16, tensor.QUint16, tensor.QInt32}
	Float8    = []tensor.DType{tensor.Float8E5M2, tensor.Float8E4M3}
	Nibbles   = []tensor.DType{tensor.Int4, tensor.Uint4}
	Opaque    = []tensor.DType{tensor.String, tensor.Resource, tensor.Variant}

	Integers = slices.Concat(Signed, Unsigned)
	Real     = slices.Concat(Floats, Integers)
	Numbers  = slices.Concat(Real, Complex)
	// Plain is the set of types for arithmetic kernels: numbers and bool.
	Plain = append(slices.Clone(Numbers), tensor.Bool)
	// Common is the set of types for operations that move elements: Plain and string.
	Common = append(slices.Clone(Plain), tensor.String)
	// All is the set of all tensor types.
	All = slices.Concat(Plain, Opaque, Quantized, Float8, Nibbles)
)

// Join returns the union of disjoint sets.
func Join(sets ...[]tensor.DType) []tensor.DType { return slices.Concat(sets...) }

// With returns set extended by more types.
func With(set []tensor.DType, more ...tensor.DType) []tensor.DType { return slices.Concat(set, more) }

// Without returns set without the types in less.
func Without(set []tensor.DType, less ...tensor.DType) []tensor.DType {
	return slices.DeleteFunc(slices.Clone(set), func(d tensor.DType) bool { return slices.Contains(less, d) })
}
