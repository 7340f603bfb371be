package tensor

import "math"

// Half is an IEEE 754 binary16, an element of DType Float16.
type Half uint16

// BFloat is the upper half of a float32, an element of DType BFloat16.
type BFloat uint16

// QI8 is an element of DType QInt8. The scale of quantized elements travels beside the tensor.
type QI8 int8

// QU8 is an element of DType QUint8.
type QU8 uint8

// QI16 is an element of DType QInt16.
type QI16 int16

// QU16 is an element of DType QUint16.
type QU16 uint16

// QI32 is an element of DType QInt32.
type QI32 int32

// F8E5M2 is an element of DType Float8E5M2.
type F8E5M2 uint8

// F8E4M3 is an element of DType Float8E4M3.
type F8E4M3 uint8

// Nibble is an element of DType Int4, one a byte.
type Nibble int8

// UNibble is an element of DType Uint4, one a byte.
type UNibble uint8

// Elem is the constraint of all Go types that are elements of some DType.
type Elem interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | complex64 | complex128 |
		Half | BFloat | QI8 | QU8 | QI16 | QU16 | QI32 | F8E5M2 | F8E4M3 | Nibble | UNibble | string | *Handle | VariantValue
}

// VariantValue is an element of a variant tensor: nil, or any value that kernels agree on (a tensor
// list, a dataset).
type VariantValue struct{ Value any }

// Handle names a resource that lives on a device. Handles are immutable and shared by pointer.
type Handle struct {
	Device    string // canonical device name
	Container string
	Name      string
	HashCode  uint64 // identifies the type of the resource
	TypeName  string
	Elems     []HandleElem // dtype and shape of what the resource holds, where known
	// Resource is the resource itself for handles that own it rather than name it; nil on every
	// handle that came from the wire.
	Resource any
}

// HandleElem is the type of one value behind a handle.
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
	case QI8:
		return QInt8
	case QU8:
		return QUint8
	case QI32:
		return QInt32
	case BFloat:
		return BFloat16
	case QI16:
		return QInt16
	case QU16:
		return QUint16
	case uint16:
		return Uint16
	case complex128:
		return Complex128
	case Half:
		return Float16
	case *Handle:
		return Resource
	case VariantValue:
		return Variant
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case F8E5M2:
		return Float8E5M2
	case F8E4M3:
		return Float8E4M3
	case Nibble:
		return Int4
	case UNibble:
		return Uint4
	}
	return Invalid
}

// Float32 widens h exactly.
func (h Half) Float32() float32 {
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

// HalfOf rounds f to the nearest Half, ties to even.
func HalfOf(f float32) Half {
	b := math.Float32bits(f)
	sign := Half(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN, quiet
		return sign | 0x7e00
	case b >= 0x47800000: // 65536 and above, infinity
		return sign | 0x7c00
	case b < 0x38800000:
		// below the smallest normal: let the float adder round to multiples of 2^-24
		v := math.Float32frombits(b) + 0.5
		return sign | Half(math.Float32bits(v)-math.Float32bits(0.5))
	}
	b += 0xfff + (b>>13)&1 // a carry out of the mantissa raises the exponent, up to infinity
	return sign | Half((b-(112<<23))>>13)
}

// Float32 widens b exactly.
func (b BFloat) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BFloatOf rounds f to the nearest BFloat, ties to even.
func BFloatOf(f float32) BFloat {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return BFloat(b>>16)&0x8000 | 0x7fc0
	}
	return BFloat((b + 0x7fff + (b>>16)&1) >> 16)
}
