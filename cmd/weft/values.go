package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// parseValues parses a tensor of the given type from nested lists in JSON, in the form of
// jsonValue.
func parseValues(dtype tensor.DType, text string) (tensor.Tensor, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return tensor.Tensor{}, fmt.Errorf("not JSON: %w", err)
	}
	var shape tensor.Shape
	for at := v; ; {
		list, ok := at.([]any)
		if !ok {
			break
		}
		shape = append(shape, int64(len(list)))
		if len(list) == 0 {
			break
		}
		at = list[0]
	}
	var flat []any
	if err := flatten(v, shape, &flat); err != nil {
		return tensor.Tensor{}, err
	}
	return fromFlat(dtype, shape, flat)
}

// flatten appends the elements of nested lists, which must have the given shape.
func flatten(v any, shape tensor.Shape, flat *[]any) error {
	list, ok := v.([]any)
	if len(shape) == 0 {
		if ok {
			return fmt.Errorf("the lists are nested to different depths")
		}
		*flat = append(*flat, v)
		return nil
	}
	if !ok || int64(len(list)) != shape[0] {
		return fmt.Errorf("the lists have different lengths")
	}
	for _, item := range list {
		if err := flatten(item, shape[1:], flat); err != nil {
			return err
		}
	}
	return nil
}

func fromFlat(dtype tensor.DType, shape tensor.Shape, flat []any) (tensor.Tensor, error) {
	switch dtype {
	case tensor.Float32:
		return convert(shape, flat, toFloat[float32])
	case tensor.Float64:
		return convert(shape, flat, toFloat[float64])
	case tensor.Float16:
		return convert(shape, flat, func(v any) (tensor.Float16Elem, error) {
			f, err := toFloat[float32](v)
			return tensor.Float16Of(f), err
		})
	case tensor.BFloat16:
		return convert(shape, flat, func(v any) (tensor.BFloat16Elem, error) {
			f, err := toFloat[float32](v)
			return tensor.BFloat16Of(f), err
		})
	case tensor.Int8:
		return convert(shape, flat, toInt[int8])
	case tensor.Int16:
		return convert(shape, flat, toInt[int16])
	case tensor.Int32:
		return convert(shape, flat, toInt[int32])
	case tensor.Int64:
		return convert(shape, flat, toInt[int64])
	case tensor.Uint8:
		return convert(shape, flat, toInt[uint8])
	case tensor.Uint16:
		return convert(shape, flat, toInt[uint16])
	case tensor.Uint32:
		return convert(shape, flat, toInt[uint32])
	case tensor.Uint64:
		return convert(shape, flat, toInt[uint64])
	case tensor.Bool:
		return convert(shape, flat, func(v any) (bool, error) {
			b, ok := v.(bool)
			return b, expected(ok, v, "true or false")
		})
	case tensor.String:
		return convert(shape, flat, toText)
	}
	return tensor.Tensor{}, fmt.Errorf("values of type %s cannot be parsed from JSON", dtype.Name())
}

func convert[T tensor.Elem](shape tensor.Shape, flat []any, f func(any) (T, error)) (tensor.Tensor, error) {
	out := make([]T, len(flat))
	for i, v := range flat {
		var err error
		if out[i], err = f(v); err != nil {
			return tensor.Tensor{}, err
		}
	}
	return tensor.FromSlice(shape, out)
}

func expected(ok bool, v any, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%v is not %s", v, what)
}

func toFloat[T float32 | float64](v any) (T, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string: // "NaN", "-Inf"
		text = v
	}
	f, err := strconv.ParseFloat(text, reflect.TypeFor[T]().Bits())
	return T(f), expected(err == nil || math.IsInf(f, 0), v, "a number")
}

func toInt[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v any) (T, error) {
	number, _ := v.(json.Number)
	t := reflect.TypeFor[T]()
	if t.Kind() >= reflect.Uint8 && t.Kind() <= reflect.Uint64 {
		u, err := strconv.ParseUint(number.String(), 10, t.Bits())
		return T(u), expected(err == nil, v, "an integer of type "+t.Name())
	}
	i, err := strconv.ParseInt(number.String(), 10, t.Bits())
	return T(i), expected(err == nil, v, "an integer of type "+t.Name())
}

func toText(v any) (string, error) {
	if m, ok := v.(map[string]any); ok {
		text, isText := m["b64"].(string)
		b, err := base64.StdEncoding.DecodeString(text)
		return string(b), expected(isText && err == nil && len(m) == 1, v, `a string or {"b64": "…"}`)
	}
	text, ok := v.(string)
	return text, expected(ok, v, `a string or {"b64": "…"}`)
}
