package jsontensor

import (
	"math"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Elements collects the elements of a tensor of one type. Unlike TensorFlow Serving, it refuses
// integers that do not fit the type, and it takes half-precision numbers and 16-bit integers.
type Elements struct {
	dtype tensor.DType
	elements
}

// NewElements returns an empty list of elements.
func NewElements(d tensor.DType) *Elements {
	switch d {
	case tensor.Float16:
		return &Elements{d, &list[tensor.Float16Elem]{dtype: d, convert: func(v jsondoc.Value) (tensor.Float16Elem, bool) {
			return tensor.Float16Of(float32(float(v))), v.Kind() == jsondoc.Number
		}}}
	case tensor.Uint16:
		return &Elements{d, &list[uint16]{dtype: d, convert: int32Of[uint16]}}
	default:
		return &Elements{d, newElements(d, 0)}
	}
}

// Add adds a value, which is no list.
func (e *Elements) Add(v jsondoc.Value) error {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch e.dtype {
	case tensor.Int8:
		lo, hi = math.MinInt8, math.MaxInt8
	case tensor.Int16:
		lo, hi = math.MinInt16, math.MaxInt16
	case tensor.Uint8:
		lo, hi = 0, math.MaxUint8
	case tensor.Uint16:
		lo, hi = 0, math.MaxUint16
	}
	if i, ok := v.Int64(); v.Kind() == jsondoc.Number && ok && (i < lo || i > hi) {
		return typeError(v, e.dtype)
	}
	return e.add(v)
}

// Len returns the number of elements.
func (e *Elements) Len() int { return e.len() }

// Tensor returns the tensor of the elements.
func (e *Elements) Tensor(shape tensor.Shape) (tensor.Tensor, error) { return e.tensor(shape) }

// AppendElements appends all elements of a tensor as one list.
func AppendElements(b []byte, t *tensor.Tensor) ([]byte, error) {
	var w *writer
	switch t.DType() {
	case tensor.Float16:
		if err := takeText("", t); err != nil {
			return nil, err
		}
		vals := tensor.Values[tensor.Float16Elem](t)
		w = &writer{element: func(b []byte, i int) []byte { return AppendFloat(b, float64(vals[i].Float32()), 32) }}
	case tensor.Uint16:
		if err := takeText("", t); err != nil {
			return nil, err
		}
		w = &writer{element: unsigned[uint16](t)}
	case tensor.BFloat16:
		return nil, status.InvalidArgumentf("BF16 has no form in JSON")
	default:
		var err error
		if w, err = newWriter("", *t); err != nil {
			return nil, err
		}
	}
	return w.append(b, tensor.Shape{int64(t.NumElements())}, 0), nil
}
