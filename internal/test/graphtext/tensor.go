package graphtext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// maxLiteral bounds the elements of a tensor in a text.
const maxLiteral = 1 << 24

// splatFrom is the number of equal elements from which only one is printed.
const splatFrom = 5

// codec reads and writes the elements of one type.
type codec struct {
	parse  func(shape tensor.Shape, words []string) (tensor.Tensor, error)
	format func(*tensor.Tensor) []string
}

var codecs = map[tensor.DType]codec{
	tensor.Float32:    codecOf(func(w string) (float32, error) { f, err := strconv.ParseFloat(w, 32); return float32(f), err }, show),
	tensor.Float64:    codecOf(func(w string) (float64, error) { return strconv.ParseFloat(w, 64) }, show),
	tensor.Float16:    codecOf(narrow(tensor.Float16Of), func(v tensor.Float16Elem) string { return show(v.Float32()) }),
	tensor.BFloat16:   codecOf(narrow(tensor.BFloat16Of), func(v tensor.BFloat16Elem) string { return show(v.Float32()) }),
	tensor.Int8:       codecOf(parseInt[int8](8), show),
	tensor.Int16:      codecOf(parseInt[int16](16), show),
	tensor.Int32:      codecOf(parseInt[int32](32), show),
	tensor.Int64:      codecOf(parseInt[int64](64), show),
	tensor.QInt8:      codecOf(parseInt[tensor.QInt8Elem](8), show),
	tensor.QInt32:     codecOf(parseInt[tensor.QInt32Elem](32), show),
	tensor.Uint8:      codecOf(parseUint[uint8](8), show),
	tensor.Uint16:     codecOf(parseUint[uint16](16), show),
	tensor.Uint32:     codecOf(parseUint[uint32](32), show),
	tensor.Uint64:     codecOf(parseUint[uint64](64), show),
	tensor.QUint8:     codecOf(parseUint[tensor.QUint8Elem](8), show),
	tensor.Bool:       codecOf(strconv.ParseBool, show),
	tensor.Complex64:  codecOf(func(w string) (complex64, error) { c, err := strconv.ParseComplex(w, 64); return complex64(c), err }, show),
	tensor.Complex128: codecOf(func(w string) (complex128, error) { return strconv.ParseComplex(w, 128) }, show),
	tensor.String:     codecOf(func(w string) (string, error) { return w, nil }, strconv.Quote),
}

func codecOf[T tensor.Elem](parse func(string) (T, error), format func(T) string) codec {
	return codec{
		parse: func(shape tensor.Shape, words []string) (tensor.Tensor, error) {
			vals := make([]T, shape.NumElements())
			for i := range vals {
				v, err := parse(words[min(i, len(words)-1)])
				if err != nil {
					return tensor.Tensor{}, err
				}
				vals[i] = v
			}
			return tensor.FromSlice(shape, vals)
		},
		format: func(t *tensor.Tensor) []string {
			vals := tensor.Values[T](t)
			words := make([]string, len(vals))
			for i, v := range vals {
				words[i] = format(v)
			}
			return words
		},
	}
}

func show[T any](v T) string { return fmt.Sprint(v) }

// integer is the constraint of integer element types.
type integer interface {
	tensor.Elem
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func parseInt[T integer](bits int) func(string) (T, error) {
	return func(w string) (T, error) { v, err := strconv.ParseInt(w, 10, bits); return T(v), err }
}

func parseUint[T integer](bits int) func(string) (T, error) {
	return func(w string) (T, error) { v, err := strconv.ParseUint(w, 10, bits); return T(v), err }
}

func narrow[T any](of func(float32) T) func(string) (T, error) {
	return func(w string) (T, error) { f, err := strconv.ParseFloat(w, 32); return of(float32(f)), err }
}

// tensor reads "[2,3]{1, 2}", a shape and elements. "..." after the last element repeats it.
func (s *scanner) tensor(dtype tensor.DType) tensor.Tensor {
	shape, ok := s.shape().Full()
	if err := shape.Check(); s.err == nil && (!ok || err != nil || shape.NumElements() > maxLiteral) {
		s.fail("want a known shape of at most %d elements", maxLiteral)
	}
	c, ok := codecs[dtype]
	if !ok {
		s.fail("tensors of type %v cannot be written down", dtype)
	}
	words, splat := s.elements(dtype)
	if s.err != nil {
		return tensor.Tensor{}
	}
	n := shape.NumElements()
	if int64(len(words)) > n || !splat && int64(len(words)) < n || n > 0 && len(words) == 0 {
		s.fail("want %d elements, not %d", n, len(words))
		return tensor.Tensor{}
	}
	t, err := c.parse(shape, words)
	if err != nil {
		s.fail("%v", err)
	}
	return t
}

func (s *scanner) elements(dtype tensor.DType) (words []string, splat bool) {
	s.expect("{")
	s.list("}", func() {
		word := ""
		if dtype == tensor.String {
			word = s.quoted()
		} else {
			word = s.until(" ,}")
			if v, ok := strings.CutSuffix(word, "..."); ok {
				word, splat = v, true
			}
		}
		words = append(words, word)
		splat = s.accept("...") || splat
	})
	return words, splat
}

func formatTensor(t *tensor.Tensor) string {
	c, ok := codecs[t.DType()]
	if !ok {
		return t.String()
	}
	elems := ""
	if n := t.NumElements(); n >= splatFrom && uniform(t) {
		row, err := t.WithShape(tensor.Shape{int64(n)})
		if err == nil {
			first := row.Rows(0, 1)
			elems = c.format(&first)[0] + "..."
		}
	} else {
		elems = strings.Join(c.format(t), ", ")
	}
	return fmt.Sprintf("%v%v{%s}", t.DType(), t.Shape(), elems)
}

// uniform reports whether all elements are equal.
func uniform(t *tensor.Tensor) bool {
	if t.DType() == tensor.String {
		vals := tensor.Values[string](t)
		for _, v := range vals {
			if v != vals[0] {
				return false
			}
		}
		return true
	}
	size := t.DType().Size()
	mem := t.Bytes()
	return bytes.Equal(mem[size:], mem[:len(mem)-size])
}
