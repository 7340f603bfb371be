package tensor

import (
	"fmt"
	"strings"
)

// DType is an element type, numbered as TensorFlow's DataType. A value above refOffset is the type
// of a reference to a variable's storage.
type DType uint8

// The element types.
const (
	Invalid    DType = 0
	Float32    DType = 1
	Float64    DType = 2
	Int32      DType = 3
	Uint8      DType = 4
	Int16      DType = 5
	Int8       DType = 6
	String     DType = 7
	Complex64  DType = 8
	Int64      DType = 9
	Bool       DType = 10
	QInt8      DType = 11
	QUint8     DType = 12
	QInt32     DType = 13
	BFloat16   DType = 14
	QInt16     DType = 15
	QUint16    DType = 16
	Uint16     DType = 17
	Complex128 DType = 18
	Float16    DType = 19
	Resource   DType = 20
	Variant    DType = 21
	Uint32     DType = 22
	Uint64     DType = 23
	Float8E5M2 DType = 24
	Float8E4M3 DType = 25 // float8_e4m3fn
	Int4       DType = 29
	Uint4      DType = 30

	refOffset DType = 100
)

type dtypeInfo struct {
	name string
	size int // bytes of an element; 0 for types that are not plain memory
}

var dtypes = [...]dtypeInfo{
	Float32: {"float32", 4}, Float64: {"float64", 8}, Int32: {"int32", 4}, Uint8: {"uint8", 1}, Int16: {"int16", 2},
	Int8: {"int8", 1}, String: {"string", 0}, Complex64: {"complex64", 8}, Int64: {"int64", 8}, Bool: {"bool", 1},
	QInt8: {"qint8", 1}, QUint8: {"quint8", 1}, QInt32: {"qint32", 4}, BFloat16: {"bfloat16", 2}, QInt16: {"qint16", 2},
	QUint16: {"quint16", 2}, Uint16: {"uint16", 2}, Complex128: {"complex128", 16}, Float16: {"float16", 2},
	Resource: {"resource", 0}, Variant: {"variant", 0}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8},
	Float8E5M2: {"float8_e5m2", 1}, Float8E4M3: {"float8_e4m3fn", 1}, Int4: {"int4", 1}, Uint4: {"uint4", 1},
}

// cNames are the names that TensorFlow's runtime prints, where they differ from those of its Python
// API.
var cNames = map[DType]string{Float32: "float", Float64: "double", Float16: "half"}

// Valid reports whether d is a type that tensors can have (reference types are not).
func (d DType) Valid() bool { return int(d) < len(dtypes) && dtypes[d].name != "" }

// Size returns the bytes of an element in memory, or 0 for strings, resources and variants.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// IsRef reports whether d is a reference type.
func (d DType) IsRef() bool { return d > refOffset }

// Ref returns the type of a reference to d.
func (d DType) Ref() DType {
	if d.IsRef() {
		return d
	}
	return d + refOffset
}

// Base returns d without its reference mark.
func (d DType) Base() DType {
	if d.IsRef() {
		return d - refOffset
	}
	return d
}

// String returns the name of the type as TensorFlow's runtime prints it in errors: "float",
// "int32", "float_ref".
func (d DType) String() string {
	if d.IsRef() {
		return d.Base().String() + "_ref"
	}
	if n, ok := cNames[d]; ok {
		return n
	}
	if d.Valid() {
		return dtypes[d].name
	}
	return fmt.Sprintf("unknown dtype enum (%d)", d)
}

// Name returns the name of the type in TensorFlow's Python API: "float32", "int32".
func (d DType) Name() string {
	if !d.Base().Valid() {
		return d.String()
	}
	if d.IsRef() {
		return dtypes[d.Base()].name + "_ref"
	}
	return dtypes[d].name
}

// Enum returns the name of the type in protocol messages: "DT_FLOAT", "DT_INT32_REF".
func (d DType) Enum() string { return "DT_" + strings.ToUpper(d.String()) }

// ParseDType reads a type by its name in either spelling, or by its enum name.
func ParseDType(s string) (DType, bool) {
	if rest, ok := strings.CutPrefix(s, "DT_"); ok {
		s = strings.ToLower(rest)
	}
	base, isRef := strings.CutSuffix(s, "_ref")
	for d := range dtypes {
		t := DType(d)
		if t.Valid() && (base == dtypes[d].name || base == t.String()) {
			if isRef {
				t = t.Ref()
			}
			return t, true
		}
	}
	return Invalid, false
}

// IsFloating reports whether d is a real floating-point type.
func (d DType) IsFloating() bool {
	switch d {
	case Float16, BFloat16, Float32, Float64, Float8E5M2, Float8E4M3:
		return true
	default:
		return false
	}
}

// IsComplex reports whether d is a complex type.
func (d DType) IsComplex() bool { return d == Complex64 || d == Complex128 }

// IsInteger reports whether d is an integer type; quantized types and bool are not.
func (d DType) IsInteger() bool {
	switch d {
	case Int4, Int8, Int16, Int32, Int64, Uint4, Uint8, Uint16, Uint32, Uint64:
		return true
	default:
		return false
	}
}

// IsQuantized reports whether d is a quantized type.
func (d DType) IsQuantized() bool {
	switch d {
	case QInt8, QUint8, QInt16, QUint16, QInt32:
		return true
	default:
		return false
	}
}
