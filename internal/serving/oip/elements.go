package oip

import (
	"slices"

	"github.com/weft-ml/weft/internal/format/rawstrings"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// datatypes are the types of the protocol.
func datatypes() map[tensor.DType]string {
	return map[tensor.DType]string{
		tensor.Bool: "BOOL", tensor.Uint8: "UINT8", tensor.Uint16: "UINT16", tensor.Uint32: "UINT32", tensor.Uint64: "UINT64",
		tensor.Int8: "INT8", tensor.Int16: "INT16", tensor.Int32: "INT32", tensor.Int64: "INT64",
		tensor.Float16: "FP16", tensor.Float32: "FP32", tensor.Float64: "FP64", tensor.String: "BYTES", tensor.BFloat16: "BF16",
	}
}

// datatype returns the name of a type in the protocol, or TensorFlow's for another type.
func datatype(d tensor.DType) string {
	if name, ok := datatypes()[d]; ok {
		return name
	}
	return d.Name()
}

// dtypeOf returns the type with a name.
func dtypeOf(name string) (tensor.DType, error) {
	for d, n := range datatypes() {
		if n == name {
			return d, nil
		}
	}
	return tensor.Invalid, status.InvalidArgumentf("unknown datatype '%s'", name)
}

// checkShape checks the shape of an input.
func checkShape(input string, shape tensor.Shape) error {
	for _, d := range shape {
		if d < 0 {
			return status.InvalidArgumentf("input '%s' has a negative dimension", input)
		}
	}
	if err := shape.Check(); err != nil {
		return status.InvalidArgumentf("input '%s': %w", input, err)
	}
	return nil
}

// decodeRaw returns the tensor of little-endian elements, or of strings with their lengths. Numbers
// share the memory of b.
func decodeRaw(input string, d tensor.DType, shape tensor.Shape, b []byte) (tensor.Tensor, error) {
	n := shape.NumElements()
	if d == tensor.String {
		vals, err := rawstrings.Decode(b, n, "element")
		if err != nil {
			return tensor.Tensor{}, status.InvalidArgumentf("input '%s': %w", input, err)
		}
		return tensor.FromSlice(shape, vals)
	}
	if want := n * int64(d.Size()); want != int64(len(b)) {
		return tensor.Tensor{}, status.InvalidArgumentf("input '%s' of type %s and shape %v has %d bytes, want %d", input, datatype(d), shape, len(b), want)
	}
	if d == tensor.Bool && slices.ContainsFunc(b, func(v byte) bool { return v > 1 }) {
		return tensor.Tensor{}, status.InvalidArgumentf("input '%s': a BOOL is neither 0 nor 1", input)
	}
	t, err := tensor.Alloc(d, shape)
	if err == nil {
		copy(t.Bytes(), b)
	}
	return t, err
}

// appendRaw is the inverse of decodeRaw: it appends the bytes of an output to b. It asks for their
// memory, which is larger than that of a tensor whose strings share one text.
func appendRaw(b []byte, output string, t *tensor.Tensor) ([]byte, error) {
	size := int64(len(t.Bytes()))
	if t.DType() == tensor.String {
		size = rawstrings.Size(tensor.Values[string](t))
	}
	if !membudget.Take(size + int64(len(b))) {
		return nil, status.ResourceExhaustedf("there is no memory for the %d bytes of output '%s' (--memory-limit)", size, output)
	}
	b = slices.Grow(b, int(size))
	if t.DType() == tensor.String {
		return rawstrings.Append(b, tensor.Values[string](t)), nil
	}
	return append(b, t.Bytes()...), nil
}
