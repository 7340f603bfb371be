package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/weft-ml/weft/internal/format/nested"
	"github.com/weft-ml/weft/internal/format/rawstrings"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Tensor is a tensor in JSON. Its elements are in exactly one of the other fields.
type Tensor struct {
	DType string `json:"dtype"`
	// Shape may be omitted with Values: they have it.
	Shape  *[]int64        `json:"shape,omitzero"`
	Values json.RawMessage `json:"values,omitzero"`
	Base64 *[]byte         `json:"base64,omitzero"`
	Bytes  *Range          `json:"bytes,omitzero"`
}

// Range is where the elements of a tensor are in the bytes after the JSON.
type Range struct {
	Offset int64 `json:"offset" doc:"Position of the first byte, from the end of the JSON."`
	Size   int64 `json:"size" doc:"Number of bytes."`
}

// dtypes are the types that have a form in JSON.
func dtypes() []tensor.DType {
	return []tensor.DType{
		tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool, tensor.String, tensor.Complex64, tensor.Complex128,
	}
}

// OpenAPISchema describes the JSON of a tensor.
func (*Tensor) OpenAPISchema() (name string, schema map[string]any) {
	var names []string
	for _, d := range dtypes() {
		names = append(names, d.Name())
	}
	size := map[string]any{"type": "integer", "format": "int64", "minimum": 0}
	return "Tensor", map[string]any{
		"type": "object", "required": []string{"dtype"}, "additionalProperties": false,
		"description": "A tensor. Its elements are in exactly one of values, base64 and bytes.",
		"properties": map[string]any{
			"dtype": map[string]any{"type": "string", "enum": names},
			"shape": map[string]any{
				"type": "array", "items": size, "maxItems": 254, "description": "It may be omitted if values are nested lists.",
			},
			"values": map[string]any{
				"description": "Elements in row-major order, as a number for a scalar, one list, or nested lists. " +
					"Numbers may be the strings NaN, Infinity and -Infinity; a complex number is a list of two. A string that is not UTF-8 is {\"b64\": \"…\"}.",
			},
			"base64": map[string]any{
				"type": "string", "format": "byte",
				"description": "Elements as little-endian bytes in base64. Strings have their length before them, as 4 bytes.",
			},
			"bytes": map[string]any{
				"type": "object", "required": []string{"offset", "size"}, "additionalProperties": false,
				"properties":  map[string]any{"offset": size, "size": size},
				"description": "Where the elements are in the bytes after the JSON, in the form of base64.",
			},
		},
	}
}

// decode returns the tensor. tail are the bytes after the JSON.
func (t *Tensor) decode(tail []byte) (tensor.Tensor, error) {
	d, ok := tensor.ParseDType(t.DType)
	if !ok || !slices.Contains(dtypes(), d) {
		return tensor.Tensor{}, status.InvalidArgumentf("the dtype %q is unknown or has no form in JSON", t.DType)
	}
	given := 0
	for _, is := range []bool{t.Values != nil, t.Base64 != nil, t.Bytes != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor needs exactly one of values, base64 and bytes")
	}
	if t.Shape != nil {
		if err := tensor.Shape(*t.Shape).Check(); err != nil {
			return tensor.Tensor{}, status.InvalidArgumentf("the shape %v: %w", *t.Shape, err)
		}
	}
	if t.Values != nil {
		return decodeValues(d, t.Shape, t.Values)
	}
	if t.Shape == nil {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor without values needs a shape")
	}
	if t.Base64 != nil {
		return decodeBytes(d, *t.Shape, *t.Base64)
	}
	r := t.Bytes
	if r.Offset < 0 || r.Size < 0 || r.Offset > int64(len(tail)) || r.Size > int64(len(tail))-r.Offset {
		return tensor.Tensor{}, status.InvalidArgumentf("the bytes from %d to %d of a tensor exceed the %d bytes after the JSON", r.Offset, r.Offset+r.Size, len(tail))
	}
	return decodeBytes(d, *t.Shape, tail[r.Offset:r.Offset+r.Size])
}

func decodeBytes(d tensor.DType, shape tensor.Shape, content []byte) (tensor.Tensor, error) {
	n := shape.NumElements()
	if d == tensor.String {
		vals, err := rawstrings.Decode(content, n, "string")
		if err != nil {
			return tensor.Tensor{}, err
		}
		return tensor.FromSlice(shape, vals)
	}
	if want := n * int64(d.Size()); want != int64(len(content)) {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor of type %s and shape %v has %d bytes, want %d", d.Name(), shape, len(content), want)
	}
	if d == tensor.Bool && slices.ContainsFunc(content, func(b byte) bool { return b > 1 }) {
		return tensor.Tensor{}, status.InvalidArgumentf("a bool is neither 0 nor 1")
	}
	out, err := tensor.Alloc(d, shape)
	if err == nil {
		copy(out.Bytes(), content)
	}
	return out, err
}

// Forms of the tensors of an answer.
const (
	formValues = "values"
	formBase64 = "base64"
	formBytes  = "bytes"
)

// encode returns the JSON of a tensor in a form. The bytes of formBytes are appended to *tail.
func encode(t *tensor.Tensor, form string, tail *[]byte) (*Tensor, error) {
	d := t.DType()
	if !slices.Contains(dtypes(), d) {
		return nil, status.InvalidArgumentf("a tensor of type %s has no form in JSON", d.Name())
	}
	shape := []int64(t.Shape())
	out := &Tensor{DType: d.Name(), Shape: &shape}
	if shape == nil {
		out.Shape = &[]int64{}
	}
	if form == "" || form == formValues {
		size := textSize(t)
		if !membudget.Take(size + marshaled*size) {
			return nil, tooLarge(t)
		}
		out.Values = appendValues(make([]byte, 0, size), t, t.Shape(), 0)
		return out, nil
	}
	size := int64(t.NumElements()) * int64(d.Size())
	if d == tensor.String {
		size = rawstrings.Size(tensor.Values[string](t))
	}
	needed := size + int64(cap(*tail)) // of a tail that is moved
	if form == formBase64 {
		needed = size + marshaled*int64(base64.StdEncoding.EncodedLen(int(size)))
	}
	if !membudget.Take(needed) {
		return nil, tooLarge(t)
	}
	if form == formBase64 {
		content := appendContent(make([]byte, 0, size), t)
		out.Base64 = &content
		return out, nil
	}
	out.Bytes = &Range{Offset: int64(len(*tail)), Size: size}
	*tail = appendContent(slices.Grow(*tail, int(size)), t)
	return out, nil
}

// marshaled is how often json.Marshal holds the text of a tensor: in a buffer that doubles while it
// grows, and in the copy of it that it returns.
const marshaled = 3

// textSize returns about the size of the values of a tensor as JSON, in bytes. That of strings is
// exact: tensors whose strings share one text are much smaller than their JSON.
func textSize(t *tensor.Tensor) int64 {
	const list = 6
	size := nested.Lists(t.Shape()) * list
	switch d := t.DType(); d {
	case tensor.String:
		var last string
		var n int64
		for i, s := range tensor.Values[string](t) {
			if i == 0 || !same(s, last) {
				last, n = s, int64(textLen(s))
			}
			size += n + int64(len(","))
		}
		return size
	case tensor.Float64, tensor.Complex128:
		const digits = 25
		return size + int64(t.NumElements())*int64(d.Size())/8*digits
	default:
		const digits = 12 // most numbers have fewer
		return size + int64(t.NumElements())*int64(max(1, d.Size()/4))*digits
	}
}

// same reports whether strings share their text.
func same(a, b string) bool { return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b) }

// textLen returns the size of what appendText appends, in bytes.
func textLen(s string) int {
	if !utf8.ValidString(s) {
		return len(`{"b64":""}`) + base64.StdEncoding.EncodedLen(len(s))
	}
	n := len(`""`) + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += len(`\u0000`) - 1
		case c == 0xe2 && (s[i:i+3] == "\u2028" || s[i:i+3] == "\u2029"):
			n += len(`\u2028`) - len("\u2028")
		}
	}
	return n
}

func tooLarge(t *tensor.Tensor) error {
	return status.ResourceExhaustedf("OOM when writing a tensor with shape%v and type %s as JSON", t.Shape(), t.DType().Name())
}

// appendContent appends the elements of a tensor as bytes.
func appendContent(b []byte, t *tensor.Tensor) []byte {
	if t.DType() != tensor.String {
		return append(b, t.Bytes()...)
	}
	return rawstrings.Append(b, tensor.Values[string](t))
}

// appendValues appends nested lists of the given shape, whose first element has the index at.
func appendValues(b []byte, t *tensor.Tensor, shape tensor.Shape, at int) []byte {
	if len(shape) == 0 {
		return appendValue(b, t, at)
	}
	stride := int(shape[1:].NumElements())
	b = append(b, '[')
	for i := range int(shape[0]) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValues(b, t, shape[1:], at+i*stride)
	}
	return append(b, ']')
}

func appendValue(b []byte, t *tensor.Tensor, i int) []byte {
	switch t.DType() {
	case tensor.Float32:
		return appendFloat(b, float64(tensor.Values[float32](t)[i]), 32)
	case tensor.Float64:
		return appendFloat(b, tensor.Values[float64](t)[i], 64)
	case tensor.Float16:
		return appendFloat(b, float64(tensor.Values[tensor.Float16Elem](t)[i].Float32()), 32)
	case tensor.BFloat16:
		return appendFloat(b, float64(tensor.Values[tensor.BFloat16Elem](t)[i].Float32()), 32)
	case tensor.Int8:
		return strconv.AppendInt(b, int64(tensor.Values[int8](t)[i]), 10)
	case tensor.Int16:
		return strconv.AppendInt(b, int64(tensor.Values[int16](t)[i]), 10)
	case tensor.Int32:
		return strconv.AppendInt(b, int64(tensor.Values[int32](t)[i]), 10)
	case tensor.Int64:
		return strconv.AppendInt(b, tensor.Values[int64](t)[i], 10)
	case tensor.Uint8:
		return strconv.AppendUint(b, uint64(tensor.Values[uint8](t)[i]), 10)
	case tensor.Uint16:
		return strconv.AppendUint(b, uint64(tensor.Values[uint16](t)[i]), 10)
	case tensor.Uint32:
		return strconv.AppendUint(b, uint64(tensor.Values[uint32](t)[i]), 10)
	case tensor.Uint64:
		return strconv.AppendUint(b, tensor.Values[uint64](t)[i], 10)
	case tensor.Bool:
		return strconv.AppendBool(b, tensor.Values[bool](t)[i])
	case tensor.Complex64:
		v := tensor.Values[complex64](t)[i]
		return append(appendFloat(append(appendFloat(append(b, '['), float64(real(v)), 32), ','), float64(imag(v)), 32), ']')
	case tensor.Complex128:
		v := tensor.Values[complex128](t)[i]
		return append(appendFloat(append(appendFloat(append(b, '['), real(v), 64), ','), imag(v), 64), ']')
	default:
		return appendText(b, tensor.Values[string](t)[i])
	}
}

func appendFloat(b []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, bits)
}

// appendText appends a string, or the object with its base64 if it is not UTF-8.
func appendText(b []byte, s string) []byte {
	var v any = s
	if !utf8.ValidString(s) {
		v = map[string][]byte{"b64": []byte(s)}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...) // strings have no errors
	}
	return append(b, text...)
}
