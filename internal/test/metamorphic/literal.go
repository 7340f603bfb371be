package metamorphic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/tensor"
)

// formatTensor prints a value without spaces, such as float32[3]{1,-0.5,2}. Its strings contain no
// spaces, commas or quotes.
func formatTensor(t *tensor.Tensor) string {
	var elems []string
	switch t.DType() {
	case tensor.Int32:
		elems = formatAll(t, func(v int32) string { return strconv.Itoa(int(v)) })
	case tensor.Int64:
		elems = formatAll(t, func(v int64) string { return strconv.FormatInt(v, 10) })
	case tensor.Float32:
		elems = formatAll(t, func(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) })
	case tensor.Float64:
		elems = formatAll(t, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) })
	case tensor.Bool:
		elems = formatAll(t, strconv.FormatBool)
	default:
		elems = formatAll(t, func(v string) string { return v })
	}
	return t.DType().Name() + t.Shape().String() + "{" + strings.Join(elems, ",") + "}"
}

func formatAll[T tensor.Elem](t *tensor.Tensor, f func(T) string) []string {
	out := make([]string, 0, t.NumElements())
	for _, v := range tensor.Values[T](t) {
		out = append(out, f(v))
	}
	return out
}

func parseTensor(text string) (tensor.Tensor, error) {
	name, rest, ok := strings.Cut(text, "[")
	shape, list, ok2 := strings.Cut(rest, "]{")
	dtype, ok3 := tensor.ParseDType(name)
	dims := "[" + shape + "]"
	if !ok || !ok2 || !ok3 || shapes[dims] == nil || !strings.HasSuffix(list, "}") {
		return tensor.Tensor{}, fmt.Errorf("%s is not a value", text)
	}
	words := strings.Split(strings.TrimSuffix(list, "}"), ",")
	if len(words) != int(shapes[dims].NumElements()) {
		return tensor.Tensor{}, fmt.Errorf("%s has %d elements", text, len(words))
	}
	switch dtype {
	case tensor.Int32:
		return parseAll(dims, words, func(s string) (int32, error) {
			v, err := strconv.ParseInt(s, 10, 32)
			return int32(v), err
		})
	case tensor.Int64:
		return parseAll(dims, words, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	case tensor.Float32:
		return parseAll(dims, words, func(s string) (float32, error) {
			v, err := strconv.ParseFloat(s, 32)
			return float32(v), err
		})
	case tensor.Float64:
		return parseAll(dims, words, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case tensor.Bool:
		return parseAll(dims, words, strconv.ParseBool)
	case tensor.String:
		return parseAll(dims, words, func(s string) (string, error) { return s, nil })
	default:
		return tensor.Tensor{}, fmt.Errorf("values are not of type %v", dtype)
	}
}

func parseAll[T tensor.Elem](shape string, words []string, f func(string) (T, error)) (tensor.Tensor, error) {
	out := make([]T, len(words))
	for i, w := range words {
		v, err := f(w)
		if err != nil {
			return tensor.Tensor{}, err
		}
		out[i] = v
	}
	return fromSlice(shape, out), nil
}
