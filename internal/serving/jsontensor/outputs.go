package jsontensor

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/weft-ml/weft/internal/format/nested"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func shapeText(s tensor.Shape) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// bytesSuffix ends the names of outputs whose strings are written as base64.
const bytesSuffix = "_bytes"

// AppendOutputs appends {"outputs": …}, the columnar form.
func AppendOutputs(b []byte, out map[string]tensor.Tensor) ([]byte, error) {
	if len(out) == 0 {
		return nil, status.InvalidArgumentf("Cannot convert empty tensor map to JSON")
	}
	b = append(b, "{\n    \"outputs\": "...)
	names := slices.Sorted(maps.Keys(out))
	if len(names) > 1 {
		b = append(b, '{')
	}
	for i, name := range names {
		if i > 0 {
			b = append(b, ", "...)
		}
		if len(names) > 1 {
			b = append(AppendString(b, name), ": "...)
		}
		w, err := newWriter(name, out[name])
		if err != nil {
			return nil, err
		}
		b = w.append(b, w.t.Shape(), 0)
	}
	if len(names) > 1 {
		b = append(b, '}')
	}
	return append(b, "\n}"...), nil
}

// AppendPredictions appends {"predictions": […]}, the row form. Every output must have the same
// first dimension.
func AppendPredictions(b []byte, out map[string]tensor.Tensor) ([]byte, error) {
	if len(out) == 0 {
		return nil, status.InvalidArgumentf("Cannot convert empty tensor map to JSON")
	}
	names := slices.Sorted(maps.Keys(out))
	batch := -1
	writers := make([]*writer, len(names))
	for i, name := range names {
		t := out[name]
		if t.Rank() == 0 {
			return nil, status.InvalidArgumentf("Tensor name: %s has no shape information ", name)
		}
		if batch >= 0 && t.Dim(0) != batch {
			return nil, status.InvalidArgumentf("Tensor name: %s has inconsistent batch size: %d expecting: %d", name, t.Dim(0), batch)
		}
		batch = t.Dim(0)
		w, err := newWriter(name, t)
		if err != nil {
			return nil, err
		}
		writers[i] = w
	}
	if err := takeNames(names, batch); err != nil {
		return nil, err
	}
	b = append(b, "{\n    \"predictions\": ["...)
	for row := range batch {
		if row > 0 {
			b = append(b, ", "...)
		}
		if len(names) > 1 {
			b = append(b, '{')
		}
		for i, w := range writers {
			if i > 0 {
				b = append(b, ", "...)
			}
			if len(names) > 1 {
				b = append(AppendString(b, names[i]), ": "...)
			}
			inner := w.t.Shape()[1:]
			b = w.append(b, inner, row*int(inner.NumElements()))
		}
		if len(names) > 1 {
			b = append(b, '}')
		}
	}
	return append(b, "]\n}"...), nil
}

// takeNames asks for the memory of names that are written for each row, if there are several.
func takeNames(names []string, rows int) error {
	size := int64(0)
	for _, name := range names {
		size += StringSize(name) + int64(len(": , "))
	}
	if len(names) > 1 && !membudget.Take(grown*size*int64(rows)) {
		return status.ResourceExhaustedf("there is no memory for the text of %d rows (--memory-limit)", rows)
	}
	return nil
}

// writer writes the elements of a tensor.
type writer struct {
	t       tensor.Tensor
	element func(b []byte, i int) []byte
}

// newWriter asks for the memory of the text.
func newWriter(name string, t tensor.Tensor) (*writer, error) {
	if err := takeText(name, &t); err != nil {
		return nil, err
	}
	w := &writer{t: t}
	switch t.DType() {
	case tensor.Float32:
		vals := tensor.Values[float32](&t)
		w.element = func(b []byte, i int) []byte { return AppendFloat(b, float64(vals[i]), 32) }
	case tensor.Float64:
		vals := tensor.Values[float64](&t)
		w.element = func(b []byte, i int) []byte { return AppendFloat(b, vals[i], 64) }
	case tensor.Int8:
		w.element = signed[int8](&t)
	case tensor.Int16:
		w.element = signed[int16](&t)
	case tensor.Int32:
		w.element = signed[int32](&t)
	case tensor.Int64:
		w.element = signed[int64](&t)
	case tensor.Uint8:
		w.element = unsigned[uint8](&t)
	case tensor.Uint32:
		w.element = unsigned[uint32](&t)
	case tensor.Uint64:
		w.element = unsigned[uint64](&t)
	case tensor.Bool:
		vals := tensor.Values[bool](&t)
		w.element = func(b []byte, i int) []byte { return strconv.AppendBool(b, vals[i]) }
	case tensor.String:
		vals := tensor.Values[string](&t)
		w.element = func(b []byte, i int) []byte { return AppendString(b, vals[i]) }
		if strings.HasSuffix(name, bytesSuffix) {
			w.element = func(b []byte, i int) []byte {
				b = base64.StdEncoding.AppendEncode(append(b, `{"b64": "`...), []byte(vals[i]))
				return append(b, `"}`...)
			}
		}
	default:
		return nil, status.InvalidArgumentf("Failed to write JSON value for tensor type: %s", DTypeName(t.DType()))
	}
	return w, nil
}

// grown is how often a slice that grows with a text takes the memory of it.
const grown = 2

// takeText asks for the memory of the text of a tensor.
func takeText(name string, t *tensor.Tensor) error {
	if !membudget.Take(grown * textSize(name, t)) {
		return status.ResourceExhaustedf("there is no memory for the text of output %s with %d elements (--memory-limit)", name, t.NumElements())
	}
	return nil
}

// textSize returns about the size of the text of a tensor, in bytes. That of strings is exact:
// tensors whose strings share one text are much smaller than their JSON.
func textSize(name string, t *tensor.Tensor) int64 {
	const list, separator = 4, 2
	n := int64(t.NumElements())
	size := nested.Lists(t.Shape())*list + n*separator
	switch t.DType() {
	case tensor.String:
		of := StringSize
		if strings.HasSuffix(name, bytesSuffix) {
			of = func(s string) int64 { return int64(len(`{"b64": ""}`) + base64.StdEncoding.EncodedLen(len(s))) }
		}
		var last string
		var lastSize int64
		for i, s := range tensor.Values[string](t) {
			if i == 0 || len(s) != len(last) || unsafe.StringData(s) != unsafe.StringData(last) {
				last, lastSize = s, of(s)
			}
			size += lastSize
		}
		return size
	case tensor.Float64:
		return size + n*24
	case tensor.Float32, tensor.Int64, tensor.Uint64:
		return size + n*16
	default:
		return size + n*10
	}
}

// StringSize returns the size of what [AppendString] appends, in bytes.
func StringSize(s string) int64 {
	n := len(`""`)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			n += utf8.RuneLen(r)
			i += size
			continue
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			n += 2
		case c < ' ':
			n += len(`\u0000`)
		default:
			n++
		}
		i++
	}
	return int64(n)
}

func signed[T int8 | int16 | int32 | int64](t *tensor.Tensor) func(b []byte, i int) []byte {
	vals := tensor.Values[T](t)
	return func(b []byte, i int) []byte { return strconv.AppendInt(b, int64(vals[i]), 10) }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](t *tensor.Tensor) func(b []byte, i int) []byte {
	vals := tensor.Values[T](t)
	return func(b []byte, i int) []byte { return strconv.AppendUint(b, uint64(vals[i]), 10) }
}

// append appends nested lists of the given shape, whose first element has the index at.
func (w *writer) append(b []byte, shape tensor.Shape, at int) []byte {
	if len(shape) == 0 {
		return w.element(b, at)
	}
	stride := int(shape[1:].NumElements())
	b = append(b, '[')
	for i := range int(shape[0]) {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = w.append(b, shape[1:], at+i*stride)
	}
	return append(b, ']')
}

// shortDigits is the number of digits of a number that is written in its short form.
const shortDigits = 6

// AppendFloat appends a number with six digits or, if these do not give the same number, with 9 for
// 32 bits and 17 for 64. Whole numbers get ".0". NaN and infinities are written as such, which is
// not valid JSON.
func AppendFloat(b []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "Infinity"...)
	case math.IsInf(v, -1):
		return append(b, "-Infinity"...)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'g', shortDigits, 64)
	if back, err := strconv.ParseFloat(string(b[start:]), bits); err != nil || back != v {
		digits := 17
		if bits == 32 {
			digits = 9
		}
		b = strconv.AppendFloat(b[:start], v, 'g', digits, 64)
	}
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

// AppendString appends a string in quotation marks. Bytes that are not valid UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
