package graphtext

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// value reads the value of an attribute. kind is the kind of the attribute, or "" if the operation
// does not define it. In that case the kind follows from the form of the value.
func (s *scanner) value(kind string) any {
	elem, isList := strings.CutPrefix(kind, "list(")
	switch {
	case s.accept("$"):
		return opdef.Placeholder(s.until(" ,]})"))
	case isList:
		return s.listOf(strings.TrimSuffix(elem, ")"))
	case strings.HasPrefix(s.rest, `"`):
		return s.quoted()
	case s.accept("@"):
		return s.function()
	case s.accept("shape") || kind == "shape" || strings.HasPrefix(s.rest, "<unknown>"):
		return s.shape()
	case strings.HasPrefix(s.rest, "["):
		return s.listOf("")
	}
	return s.plain(kind)
}

// plain reads the values without quotes or brackets: numbers, booleans and types, and tensors,
// which start with a type.
func (s *scanner) plain(kind string) any {
	at := s.rest
	word := s.until(" ,[]{}")
	if dtype, ok := tensor.ParseDType(word); ok {
		if strings.HasPrefix(s.rest, "[") {
			return s.tensor(dtype)
		}
		return dtype
	}
	if v, err := strconv.ParseInt(word, 0, 64); err == nil && kind != "float" {
		return v
	}
	if v, err := strconv.ParseBool(word); err == nil && (word == "true" || word == "false") {
		return v
	}
	if v, err := strconv.ParseFloat(word, 32); err == nil {
		return float32(v)
	}
	s.rest = at
	s.fail("want a value")
	return nil
}

func (s *scanner) function() opdef.Func {
	fn := opdef.Func{Name: s.until(" ,]{}")}
	if !s.accept("{") {
		return fn
	}
	fn.Attrs = opdef.Attrs{}
	s.list("}", func() {
		name := s.until("=")
		s.expect("=")
		fn.Attrs[name] = s.value("")
	})
	return fn
}

func (s *scanner) shape() tensor.PartialShape {
	if s.accept("<unknown>") {
		return tensor.PartialShape{}
	}
	s.expect("[")
	dims := []int64{}
	s.list("]", func() {
		if s.accept("?") {
			dims = append(dims, tensor.UnknownDim)
			return
		}
		dims = append(dims, s.size())
	})
	return tensor.MakePartial(dims...)
}

func (s *scanner) size() int64 {
	word := s.until(" ,]")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		s.fail("want a size, not %q", word)
	}
	return n
}

// listOf reads a list. If the kind of its elements is unknown, it follows from the first one.
func (s *scanner) listOf(kind string) any {
	s.expect("[")
	var elems []any
	s.list("]", func() {
		v := s.value(kind)
		if len(elems) > 0 && opdef.KindOf(v) != opdef.KindOf(elems[0]) {
			s.fail("want a %s like the first element", opdef.KindOf(elems[0]))
		}
		elems = append(elems, v)
	})
	if len(elems) == 0 || s.err != nil {
		return opdef.AnyList{}
	}
	switch elems[0].(type) {
	case string:
		return typed[string](elems)
	case int64:
		return typed[int64](elems)
	case float32:
		return typed[float32](elems)
	case bool:
		return typed[bool](elems)
	case tensor.DType:
		return typed[tensor.DType](elems)
	case tensor.PartialShape:
		return typed[tensor.PartialShape](elems)
	case tensor.Tensor:
		return typed[tensor.Tensor](elems)
	case opdef.Func:
		return typed[opdef.Func](elems)
	}
	s.fail("no list can have elements of kind %s", opdef.KindOf(elems[0]))
	return nil
}

func typed[T any](elems []any) []T {
	out := make([]T, len(elems))
	for i, v := range elems {
		out[i] = v.(T)
	}
	return out
}

// formatValue is the inverse of value. known is false for attributes that the operation does not
// define.
func formatValue(v any, known bool) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float32:
		return formatFloat(v)
	case bool:
		return strconv.FormatBool(v)
	case tensor.DType:
		return v.String()
	case tensor.PartialShape:
		if !known {
			return "shape" + v.String()
		}
		return v.String()
	case tensor.Tensor:
		return formatTensor(&v)
	case opdef.Func:
		return formatFunc(v)
	case opdef.Placeholder:
		return "$" + string(v)
	case []string:
		return formatList(v, known)
	case []int64:
		return formatList(v, known)
	case []float32:
		return formatList(v, known)
	case []bool:
		return formatList(v, known)
	case []tensor.DType:
		return formatList(v, known)
	case []tensor.PartialShape:
		return formatList(v, known)
	case []tensor.Tensor:
		return formatList(v, known)
	case []opdef.Func:
		return formatList(v, known)
	}
	return "[]"
}

func formatList[T any](list []T, known bool) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = formatValue(v, known)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func formatFunc(fn opdef.Func) string {
	if fn.Attrs == nil {
		return "@" + fn.Name
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fn.Attrs)) {
		parts = append(parts, name+"="+formatValue(fn.Attrs[name], false))
	}
	return "@" + fn.Name + "{" + strings.Join(parts, ", ") + "}"
}

// formatFloat writes a number so that it cannot be read as an integer.
func formatFloat(f float32) string {
	s := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if strings.ContainsAny(s, ".eIN") {
		return strings.ToLower(s)
	}
	return s + ".0"
}
