package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// decodeValues returns the tensor of a valid JSON text: one element, a list or nested lists.
// Without a shape, the lists must be nested evenly.
func decodeValues(d tensor.DType, shape *[]int64, text json.RawMessage) (tensor.Tensor, error) {
	p := &parser{text: text, complex: d.IsComplex()}
	if shape == nil {
		found := p.shapeOf()
		shape = &found
		p.strict = true
	}
	n := tensor.Shape(*shape).NumElements()
	if err := tensor.Shape(*shape).Check(); err != nil || n > int64(len(text)) {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor of shape %v has fewer values", *shape)
	}
	size := n * 16
	if d == tensor.String {
		// The text of a string is copied to be parsed, and its value is a copy of bytes.
		const copies = 4
		size += copies * int64(len(text))
	}
	if !membudget.Take(size) {
		return tensor.Tensor{}, status.ResourceExhaustedf("OOM when reading a tensor with shape%v from JSON", *shape)
	}
	switch d {
	case tensor.Float32:
		return collect(p, *shape, func(s string) (float32, bool) { v, ok := number(s, 32); return float32(v), ok })
	case tensor.Float64:
		return collect(p, *shape, func(s string) (float64, bool) { return number(s, 64) })
	case tensor.Float16:
		return collect(p, *shape, func(s string) (tensor.Float16Elem, bool) {
			v, ok := number(s, 32)
			return tensor.Float16Of(float32(v)), ok
		})
	case tensor.BFloat16:
		return collect(p, *shape, func(s string) (tensor.BFloat16Elem, bool) {
			v, ok := number(s, 32)
			return tensor.BFloat16Of(float32(v)), ok
		})
	case tensor.Int8:
		return collect(p, *shape, signed[int8](8))
	case tensor.Int16:
		return collect(p, *shape, signed[int16](16))
	case tensor.Int32:
		return collect(p, *shape, signed[int32](32))
	case tensor.Int64:
		return collect(p, *shape, signed[int64](64))
	case tensor.Uint8:
		return collect(p, *shape, unsigned[uint8](8))
	case tensor.Uint16:
		return collect(p, *shape, unsigned[uint16](16))
	case tensor.Uint32:
		return collect(p, *shape, unsigned[uint32](32))
	case tensor.Uint64:
		return collect(p, *shape, unsigned[uint64](64))
	case tensor.Bool:
		return collect(p, *shape, func(s string) (v, ok bool) { return s == "true", s == "true" || s == "false" })
	case tensor.Complex64:
		return collect(p, *shape, func(s string) (complex64, bool) { v, ok := pair(s, 32); return complex64(v), ok })
	case tensor.Complex128:
		return collect(p, *shape, func(s string) (complex128, bool) { return pair(s, 64) })
	default:
		return collect(p, *shape, textOf)
	}
}

// maxRank is the largest rank of a tensor. It bounds the work for lists that are nested deeper.
const maxRank = 254

// parser finds the elements in nested lists.
type parser struct {
	text    []byte
	at      int
	complex bool // a list of two numbers is an element
	strict  bool // the lists must have the form of the shape
}

func (p *parser) skip() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n', ',':
			p.at++
		default:
			return
		}
	}
}

// isPair reports whether a list that begins here is a complex number.
func (p *parser) isPair() bool {
	if !p.complex {
		return false
	}
	for i := p.at + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case ' ', '\t', '\r', '\n':
		case '[', ']':
			return false
		default:
			return true
		}
	}
	return false
}

// shapeOf returns the shape of the first elements of each level. It reads the text once.
func (p *parser) shapeOf() []int64 {
	shape := []int64{}
	q := &parser{text: p.text, complex: p.complex}
	depth, first := 0, 0 // open lists, and those of them that are first elements of the one around
	descends := true     // no list of those has been closed, and no other element was found
	for q.skip(); q.at < len(q.text); q.skip() {
		if q.text[q.at] == ']' {
			if descends = false; depth == first {
				first--
			}
			depth--
			q.at++
		} else {
			if depth == first && depth > 0 {
				shape[depth-1]++
			}
			if q.text[q.at] != '[' || q.isPair() {
				descends = false
				q.skipValue()
			} else {
				if depth++; descends {
					first++
					if shape = append(shape, 0); len(shape) > maxRank {
						return shape
					}
				}
				q.at++
			}
		}
		if first == 0 {
			break
		}
	}
	return shape
}

// value skips one value and returns its text.
func (p *parser) value() string { return string(p.skipValue()) }

// skipValue skips one value and returns its bytes.
func (p *parser) skipValue() []byte {
	start, depth := p.at, 0
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return p.text[start:p.at]
			}
			if depth--; depth == 0 {
				p.at++
				return p.text[start:p.at]
			}
		case '"':
			for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
				if p.text[p.at] == '\\' {
					p.at++
				}
			}
			if depth == 0 {
				p.at++
				return p.text[start:min(p.at, len(p.text))]
			}
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				return p.text[start:p.at]
			}
		}
		p.at++
	}
	return p.text[start:]
}

// collect returns the tensor of all elements.
func collect[T tensor.Elem](p *parser, shape tensor.Shape, convert func(text string) (T, bool)) (tensor.Tensor, error) {
	n := shape.NumElements()
	vals := make([]T, 0, n)
	var counts []int64 // values in each open list
	closed := func(level int) bool { return !p.strict || level >= len(shape) || counts[level] == shape[level] }
	for p.skip(); p.at < len(p.text); p.skip() {
		switch {
		case p.text[p.at] == '[' && !p.isPair():
			if len(counts) > 0 {
				counts[len(counts)-1]++
			}
			if counts = append(counts, 0); len(counts) > len(shape) && (p.strict || len(counts) > 1) {
				return tensor.Tensor{}, status.InvalidArgumentf("the values are not nested as the shape %v", shape)
			}
			p.at++
		case p.text[p.at] == ']':
			if !closed(len(counts) - 1) {
				return tensor.Tensor{}, status.InvalidArgumentf("the values are not nested evenly: want the shape %v", shape)
			}
			counts = counts[:len(counts)-1]
			p.at++
		default:
			if p.strict && len(counts) != len(shape) {
				return tensor.Tensor{}, status.InvalidArgumentf("the values are not nested evenly: want the shape %v", shape)
			}
			if len(counts) > 0 {
				counts[len(counts)-1]++
			}
			text := p.value()
			v, ok := convert(text)
			if !ok {
				return tensor.Tensor{}, status.InvalidArgumentf("the value %.100s is not one of type %s", text, tensor.DTypeOf[T]().Name())
			}
			if int64(len(vals)) == n {
				return tensor.Tensor{}, status.InvalidArgumentf("a tensor of shape %v has more than %d values", shape, n)
			}
			vals = append(vals, v)
		}
	}
	if int64(len(vals)) != n {
		return tensor.Tensor{}, status.InvalidArgumentf("a tensor of shape %v has %d values, want %d", shape, len(vals), n)
	}
	return tensor.FromSlice(shape, vals)
}

// number parses a number, or one of the strings for those that JSON lacks.
func number(s string, bits int) (float64, bool) {
	switch s {
	case `"NaN"`:
		return math.NaN(), true
	case `"Infinity"`:
		return math.Inf(1), true
	case `"-Infinity"`:
		return math.Inf(-1), true
	}
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, bits)
	// a number that is too large is infinite, as in Python
	return v, err == nil || math.IsInf(v, 0)
}

func signed[T int8 | int16 | int32 | int64](bits int) func(s string) (T, bool) {
	return func(s string) (T, bool) {
		v, err := strconv.ParseInt(s, 10, bits)
		return T(v), err == nil
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int) func(s string) (T, bool) {
	return func(s string) (T, bool) {
		v, err := strconv.ParseUint(s, 10, bits)
		return T(v), err == nil
	}
}

// pair parses a list of two numbers.
func pair(s string, bits int) (complex128, bool) {
	if len(s) == 0 || s[0] != '[' {
		v, ok := number(s, bits)
		return complex(v, 0), ok
	}
	p := &parser{text: []byte(s[1 : len(s)-1])}
	var parts [2]float64
	for i := range parts {
		p.skip()
		v, ok := number(p.value(), bits)
		if !ok {
			return 0, false
		}
		parts[i] = v
	}
	p.skip()
	return complex(parts[0], parts[1]), p.at == len(p.text)
}

// textOf returns a string, or the bytes of {"b64": "…"}.
func textOf(s string) (string, bool) {
	var text string
	if json.Unmarshal([]byte(s), &text) == nil && s != "null" {
		return text, true
	}
	var b struct {
		B64 *string `json:"b64"`
	}
	if json.Unmarshal([]byte(s), &b) != nil || b.B64 == nil {
		return "", false
	}
	v, err := base64.StdEncoding.DecodeString(*b.B64)
	return string(v), err == nil
}
