package opdef

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// Key returns a text that only functions of the same name with equal attributes have in common. It
// is not for people: [FormatAttr] abbreviates long values, so different ones can look the same.
func (f Func) Key() string { return string(appendFunc(nil, f)) }

func appendFunc(b []byte, f Func) []byte {
	b = appendText(b, f.Name)
	b = binary.AppendUvarint(b, uint64(len(f.Attrs)))
	for _, name := range slices.Sorted(maps.Keys(f.Attrs)) {
		b = appendValue(appendText(b, name), f.Attrs[name])
	}
	return b
}

// appendText appends a text with its length, so that the texts that follow each other in a key
// cannot be cut elsewhere.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendValue appends the value of an attribute with its type.
func appendValue(b []byte, v any) []byte {
	b = appendText(b, fmt.Sprintf("%T", v))
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case Placeholder:
		return appendText(b, string(v))
	case float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	case Func:
		return appendFunc(b, v)
	case tensor.Tensor:
		return appendTensor(b, v)
	case []string:
		return appendList(b, v, appendText)
	case []int64:
		return appendList(b, v, binary.AppendVarint)
	case []float32:
		return appendList(b, v, func(b []byte, f float32) []byte { return binary.LittleEndian.AppendUint32(b, math.Float32bits(f)) })
	case []Func:
		return appendList(b, v, appendFunc)
	case []tensor.Tensor:
		return appendList(b, v, appendTensor)
	default: // numbers, types, shapes, and lists of these: their texts differ if they do
		return appendText(b, fmt.Sprint(v))
	}
}

func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = one(b, v)
	}
	return b
}

func appendTensor(b []byte, t tensor.Tensor) []byte {
	b = appendText(b, fmt.Sprint(t.DType(), t.Shape()))
	switch t.DType() {
	case tensor.String:
		return appendList(b, tensor.Values[string](&t), appendText)
	case tensor.Resource, tensor.Variant:
		return appendText(b, fmt.Sprint(t))
	}
	return append(b, t.Bytes()...)
}
