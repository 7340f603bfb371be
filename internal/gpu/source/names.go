package source

import "github.com/weft-ml/weft/tensor"

// typeNames are the element types in the names of kernels.
var typeNames = map[tensor.DType]string{
	tensor.Float16: "f16", tensor.BFloat16: "bf16", tensor.Float32: "f32", tensor.Float64: "f64",
	tensor.Int8: "i8", tensor.Int16: "i16", tensor.Int32: "i32", tensor.Int64: "i64",
	tensor.Uint8: "u8", tensor.Uint16: "u16", tensor.Uint32: "u32", tensor.Uint64: "u64",
	tensor.Bool: "b8", tensor.Complex64: "c64", tensor.Complex128: "c128",
}

// sizeNames are the sizes of elements, in bytes, in the names of kernels that copy.
var sizeNames = map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "c128"}

// TypesByName are the element types by their names in the names of kernels. It is not changed.
var TypesByName = func() map[string]tensor.DType {
	out := make(map[string]tensor.DType, len(typeNames))
	for t, name := range typeNames {
		out[name] = t
	}
	return out
}()

// TypeName returns the name of an element type in the names of kernels; "" for a type without
// kernels.
func TypeName(t tensor.DType) string { return typeNames[t] }

// SizeName returns the name of elements of a size, in bytes, in the names of kernels that copy; ""
// for a size without kernels.
func SizeName(size int) string { return sizeNames[size] }
