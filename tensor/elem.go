package tensor

import "math"

// Float16Elem is an IEEE 754 binary16, an element of DType Float16.
type Float16Elem uint16

// BFloat16Elem is the upper half of a float32, an element of DType BFloat16.
type BFloat16Elem uint16

// QInt8Elem is an element of DType QInt8. The quantization range is not part of the tensor.
type QInt8Elem int8

// QUint8Elem is an element of DType QUint8.
type QUint8Elem uint8

// QInt16Elem is an element of DType QInt16.
type QInt16Elem int16

// QUint16Elem is an element of DType QUint16.
type QUint16Elem uint16

// QInt32Elem is an element of DType QInt32.
type QInt32Elem int32

// Float8E5M2Elem is an element of DType Float8E5M2.
type Float8E5M2Elem uint8

// Float8E4M3Elem is an element of DType Float8E4M3.
type Float8E4M3Elem uint8

// Int4Elem is an element of DType Int4, one a byte.
type Int4Elem int8

// Uint4Elem is an element of DType Uint4, one a byte.
type Uint4Elem uint8

// Elem is the constraint of all Go types that are elements of some DType.
type Elem interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128 |
		Float16Elem | BFloat16Elem | QInt8Elem | QUint8Elem | QInt16Elem | QUint16Elem | QInt32Elem | Float8E5M2Elem | Float8E4M3Elem | Int4Elem | Uint4Elem | string | *Handle | VariantValue
}

// VariantValue is an element of a variant tensor: nil, or any value that kernels share (a tensor
// list, a dataset).
type VariantValue struct{ Value any }

// Handle identifies a resource on a device. Handles are immutable and shared by pointer.
type Handle struct {
	Device    string       // canonical device name
	Container string       // container of the resource on the device
	Name      string       // name of the resource in the container
	HashCode  uint64       // identifies the type of the resource
	TypeName  string       // TensorFlow's name of the type
	Elems     []HandleElem // dtypes and shapes of the values of the resource, if known
	// Resource is the resource itself, for handles that own it instead of naming it. It is nil in
	// handles from other processes.
	Resource any
}

// HandleElem is the dtype and shape of one value behind a handle.
type HandleElem struct {
	DType DType
	Shape PartialShape
}

// DTypeOf returns the DType whose elements are of Go type T.
func DTypeOf[T Elem]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case uint8:
		return Uint8
	case int16:
		return Int16
	case int8:
		return Int8
	case string:
		return String
	case complex64:
		return Complex64
	case int64:
		return Int64
	case bool:
		return Bool
	case QInt8Elem:
		return QInt8
	case QUint8Elem:
		return QUint8
	case QInt32Elem:
		return QInt32
	case BFloat16Elem:
		return BFloat16
	case QInt16Elem:
		return QInt16
	case QUint16Elem:
		return QUint16
	case uint16:
		return Uint16
	case complex128:
		return Complex128
	case Float16Elem:
		return Float16
	case *Handle:
		return Resource
	case VariantValue:
		return Variant
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case Float8E5M2Elem:
		return Float8E5M2
	case Float8E4M3Elem:
		return Float8E4M3
	case Int4Elem:
		return Int4
	case Uint4Elem:
		return Uint4
	}
	return Invalid
}

// Float32 widens h exactly.
func (h Float16Elem) Float32() float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // zero or subnormal: frac * 2^-24
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// Float16Of rounds f to the nearest Float16Elem, ties to even.
func Float16Of(f float32) Float16Elem {
	b := math.Float32bits(f)
	sign := Float16Elem(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN, quiet
		return sign | 0x7e00
	case b >= 0x47800000: // 65536 and above, infinity
		return sign | 0x7c00
	case b < 0x38800000:
		// below the smallest normal number: adding 0.5 rounds to a multiple of 2^-24
		v := math.Float32frombits(b) + 0.5
		return sign | Float16Elem(math.Float32bits(v)-math.Float32bits(0.5))
	}
	b += 0xfff + (b>>13)&1 // a carry out of the mantissa raises the exponent, up to infinity
	return sign | Float16Elem((b-(112<<23))>>13)
}

// Float32 widens b exactly.
func (b BFloat16Elem) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BFloat16Of rounds f to the nearest BFloat16Elem, ties to even.
func BFloat16Of(f float32) BFloat16Elem {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return BFloat16Elem(b>>16)&0x8000 | 0x7fc0
	}
	return BFloat16Elem((b + 0x7fff + (b>>16)&1) >> 16)
}
