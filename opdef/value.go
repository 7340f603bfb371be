package opdef

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// ParseValue parses an attribute value of the given kind in the language of definitions:
//
//	string  'text' or "text", with the escapes \n, \t, \\ and \'    shape   [2,-1] or <unknown>
//	int     -3                                                    tensor  uint8[4]{255, 0, 0, 255}
//	float   0.5, 1e-4, inf                                        func    name or 'name'
//	bool    true                                                  list    [1, 2]
//	type    float32
func ParseValue(kind, text string) (any, error) {
	s := &valueScanner{rest: text}
	v, err := s.value(kind)
	if err == nil && s.skip() != "" {
		err = fmt.Errorf("unexpected %q after the value", s.rest)
	}
	return v, err
}

type valueScanner struct{ rest string }

// skip skips white space and returns the rest.
func (s *valueScanner) skip() string {
	s.rest = strings.TrimLeft(s.rest, " \t")
	return s.rest
}

func (s *valueScanner) accept(prefix string) bool {
	rest, ok := strings.CutPrefix(s.skip(), prefix)
	if ok {
		s.rest = rest
	}
	return ok
}

// word consumes and returns the text before the next separator.
func (s *valueScanner) word() string {
	end := strings.IndexAny(s.skip(), ",]}[{ ")
	if end < 0 {
		end = len(s.rest)
	}
	w := s.rest[:end]
	s.rest = s.rest[end:]
	return w
}

func (s *valueScanner) value(kind string) (any, error) {
	if elem, ok := strings.CutPrefix(kind, "list("); ok {
		return s.anyList(strings.TrimSuffix(elem, ")"))
	}
	switch kind {
	case "string":
		return s.text()
	case "int":
		return strconv.ParseInt(s.word(), 10, 64)
	case "float":
		v, err := strconv.ParseFloat(s.word(), 32)
		return float32(v), err
	case "bool":
		return strconv.ParseBool(s.word())
	case "type":
		return s.dtype()
	case "shape":
		return s.shape()
	case "tensor":
		return s.tensor()
	case "func":
		if r := s.skip(); strings.HasPrefix(r, "'") || strings.HasPrefix(r, `"`) {
			name, err := s.text()
			return Func{Name: name}, err
		}
		return Func{Name: s.word()}, nil
	}
	return nil, fmt.Errorf("defaults of kind %s are not supported", kind)
}

func (s *valueScanner) text() (string, error) {
	if s.skip() == "" || s.rest[0] != '\'' && s.rest[0] != '"' {
		return "", fmt.Errorf("%s is not in quotes", s.rest)
	}
	quote := s.rest[0]
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == quote:
			s.rest = s.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(s.rest):
			i++
			if s.rest[i] == 'x' && i+2 < len(s.rest) {
				code, err := strconv.ParseUint(s.rest[i+1:i+3], 16, 8)
				if err != nil {
					return "", fmt.Errorf("\\%s is not a hexadecimal escape", s.rest[i:i+3])
				}
				b.WriteByte(byte(code))
				i += 2
				continue
			}
			b.WriteByte(unescape(s.rest[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%s has no closing quote", s.rest)
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	default:
		return c
	}
}

func (s *valueScanner) dtype() (tensor.DType, error) {
	w := s.word()
	if d, ok := tensor.ParseDType(w); ok {
		return d, nil
	}
	return tensor.Invalid, fmt.Errorf("unknown type %s", w)
}

func (s *valueScanner) shape() (tensor.PartialShape, error) {
	if s.accept("<unknown>") {
		return tensor.PartialShape{}, nil
	}
	dims, err := list[int64](s, "int", "[", "]")
	return tensor.MakePartial(dims...), err
}

func (s *valueScanner) anyList(kind string) (any, error) {
	switch kind {
	case "string":
		return list[string](s, kind, "[", "]")
	case "int":
		return list[int64](s, kind, "[", "]")
	case "float":
		return list[float32](s, kind, "[", "]")
	case "bool":
		return list[bool](s, kind, "[", "]")
	case "type":
		return list[tensor.DType](s, kind, "[", "]")
	case "shape":
		return list[tensor.PartialShape](s, kind, "[", "]")
	case "tensor":
		return list[tensor.Tensor](s, kind, "[", "]")
	case "func":
		return list[Func](s, kind, "[", "]")
	}
	return nil, fmt.Errorf("unknown kind %s", kind)
}

// list parses a list of values of a kind, whose Go type is T, between begin and end.
func list[T any](s *valueScanner, kind, begin, end string) ([]T, error) {
	out := []T{}
	if !s.accept(begin) {
		return nil, fmt.Errorf("%s is not a list in %s%s", s.rest, begin, end)
	}
	for !s.accept(end) {
		if len(out) > 0 && !s.accept(",") {
			return nil, fmt.Errorf("%q is not separated by a comma", s.rest)
		}
		v, err := s.value(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, v.(T)) // T is the Go type of the kind
	}
	return out, nil
}

func (s *valueScanner) tensor() (tensor.Tensor, error) {
	dtype, err := s.dtype()
	if err != nil {
		return tensor.Tensor{}, err
	}
	partial, err := s.shape()
	if err != nil {
		return tensor.Tensor{}, err
	}
	shape, ok := partial.Full()
	if !ok {
		return tensor.Tensor{}, fmt.Errorf("the shape %v of a tensor is not fully known", partial)
	}
	switch dtype {
	case tensor.Float32:
		vals, err := list[float32](s, "float", "{", "}")
		return fromValues(shape, vals, err, func(v float32) float32 { return v })
	case tensor.Int32:
		vals, err := list[int64](s, "int", "{", "}")
		return fromValues(shape, vals, err, func(v int64) int32 { return int32(v) })
	case tensor.Uint8:
		vals, err := list[int64](s, "int", "{", "}")
		return fromValues(shape, vals, err, func(v int64) uint8 { return uint8(v) })
	default:
		return tensor.Tensor{}, fmt.Errorf("tensors of type %v are not supported", dtype)
	}
}

func fromValues[F any, T tensor.Elem](shape tensor.Shape, vals []F, err error, convert func(F) T) (tensor.Tensor, error) {
	if err != nil {
		return tensor.Tensor{}, err
	}
	out := make([]T, len(vals))
	for i, v := range vals {
		out[i] = convert(v)
	}
	return tensor.FromSlice(shape, out)
}
