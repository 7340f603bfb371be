package jsontensor

import (
	"encoding/base64"
	"math"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// elements collects the elements of a tensor of one type.
type elements interface {
	// add adds a value, which is no list.
	add(v jsondoc.Value) error
	len() int
	tensor(shape tensor.Shape) (tensor.Tensor, error)
}

// list is the elements of one Go type.
type list[T tensor.Elem] struct {
	dtype   tensor.DType
	vals    []T
	convert func(v jsondoc.Value) (val T, ok bool)
}

func (l *list[T]) add(v jsondoc.Value) error {
	val, ok := l.convert(v)
	if !ok {
		return typeError(v, l.dtype)
	}
	l.vals = membudget.Append(l.vals, val)
	return nil
}

func (l *list[T]) len() int { return len(l.vals) }

func (l *list[T]) tensor(shape tensor.Shape) (tensor.Tensor, error) {
	return tensor.FromSlice(shape, l.vals)
}

// DTypeName returns the name of a type in TensorFlow Serving's errors.
func DTypeName(d tensor.DType) string {
	switch d {
	case tensor.Float32:
		return "float"
	case tensor.Float64:
		return "double"
	case tensor.Float16:
		return "half"
	default:
		return d.Name()
	}
}

func typeError(v jsondoc.Value, d tensor.DType) error {
	return status.InvalidArgumentf("JSON Value: %s Type: %s is not of expected type: %s", v, v.Kind(), DTypeName(d))
}

// newElements returns an empty list of elements, with memory for n of them. It panics with a
// [*membudget.Exceeded] if there is none, and so does the list when it grows.
func newElements(d tensor.DType, n int) elements {
	switch d {
	case tensor.Float32:
		return &list[float32]{d, membudget.MakeCap[float32](n), func(v jsondoc.Value) (float32, bool) {
			return float32(float(v)), v.Kind() == jsondoc.Number
		}}
	case tensor.Float64:
		return &list[float64]{d, membudget.MakeCap[float64](n), func(v jsondoc.Value) (float64, bool) { return float(v), v.Kind() == jsondoc.Number }}
	case tensor.Int32:
		return &list[int32]{d, membudget.MakeCap[int32](n), int32Of[int32]}
	case tensor.Int16:
		return &list[int16]{d, membudget.MakeCap[int16](n), int32Of[int16]}
	case tensor.Int8:
		return &list[int8]{d, membudget.MakeCap[int8](n), int32Of[int8]}
	case tensor.Uint8:
		return &list[uint8]{d, membudget.MakeCap[uint8](n), int32Of[uint8]}
	case tensor.Int64:
		return &list[int64]{d, membudget.MakeCap[int64](n), func(v jsondoc.Value) (int64, bool) {
			i, ok := v.Int64()
			return i, ok && v.Kind() == jsondoc.Number
		}}
	case tensor.Uint32:
		return &list[uint32]{d, membudget.MakeCap[uint32](n), func(v jsondoc.Value) (uint32, bool) {
			u, ok := v.Uint64()
			return uint32(u), ok && v.Kind() == jsondoc.Number && u <= math.MaxUint32 //nolint:gosec // checked
		}}
	case tensor.Uint64:
		return &list[uint64]{d, membudget.MakeCap[uint64](n), func(v jsondoc.Value) (uint64, bool) {
			u, ok := v.Uint64()
			return u, ok && v.Kind() == jsondoc.Number
		}}
	case tensor.Bool:
		return &list[bool]{d, membudget.MakeCap[bool](n), func(v jsondoc.Value) (bool, bool) {
			return v.Kind() == jsondoc.True, v.Kind() == jsondoc.True || v.Kind() == jsondoc.False
		}}
	case tensor.String:
		return &texts{list: list[string]{dtype: d, vals: membudget.MakeCap[string](n)}}
	default:
		return unsupported(d)
	}
}

func float(v jsondoc.Value) float64 {
	if v.Kind() != jsondoc.Number {
		return 0
	}
	return v.Float64()
}

// int32Of converts an integer that fits int32; a narrower type wraps around.
func int32Of[T int32 | int16 | int8 | uint8 | uint16](v jsondoc.Value) (T, bool) {
	if v.Kind() != jsondoc.Number {
		return 0, false
	}
	i, ok := v.Int64()
	return T(i), ok && i >= math.MinInt32 && i <= math.MaxInt32
}

// texts are the elements of a string tensor.
type texts struct {
	list[string]
	meter membudget.Meter
}

func (l *texts) add(v jsondoc.Value) error {
	switch v.Kind() {
	case jsondoc.String:
		l.meter.MustTake(int(v.TextMemory()))
		l.vals = membudget.Append(l.vals, v.Text())
	case jsondoc.Object:
		b, err := decodeBase64(v, &l.meter)
		if err != nil {
			return err
		}
		l.vals = membudget.Append(l.vals, b)
	default:
		return typeError(v, l.dtype)
	}
	return nil
}

// IsBase64 reports whether a value is {"b64": "…"}.
func IsBase64(v jsondoc.Value) bool {
	m, ok := v.Member("b64")
	return ok && v.Len() == 1 && m.Kind() == jsondoc.String
}

// decodeBase64 decodes {"b64": "…"}. It asks for the memory of the text, the bytes and the
// string.
func decodeBase64(v jsondoc.Value, meter *membudget.Meter) (string, error) {
	if !IsBase64(v) {
		return "", status.InvalidArgumentf("JSON Value: %s not formatted correctly for base64 data", v)
	}
	m, _ := v.Member("b64")
	meter.MustTake(3 * int(m.TextMemory()))
	text := m.Text()
	for len(text)%4 == 0 && len(text) > 0 && text[len(text)-1] == '=' || len(text)%4 == 3 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return "", status.InvalidArgumentf("Unable to base64 decode")
	}
	return string(b), nil
}

// unsupported is a type without a form in JSON.
type unsupported tensor.DType

func (u unsupported) add(v jsondoc.Value) error {
	return status.Unimplementedf("Conversion of JSON Value: %s to type: %s", v, DTypeName(tensor.DType(u)))
}

func (u unsupported) len() int { return 0 }

func (u unsupported) tensor(shape tensor.Shape) (tensor.Tensor, error) {
	return tensor.Zeros(tensor.DType(u), shape)
}
