package tensor

import (
	"reflect"

	"github.com/weft-ml/weft/status"
)

// New returns a tensor with the values of v: a Go scalar, or slices or arrays of one nested to any depth, all of the same
// length at each depth. int is taken as int32 where every value fits, as TensorFlow's clients do, and as int64 otherwise.
// The values are copied, except that a flat slice of an element type is shared.
func New(v any) (Tensor, error) {
	switch v := v.(type) {
	case Tensor:
		return v, nil
	case *Tensor:
		return *v, nil
	case []float32:
		return Vector(v...), nil
	}
	r := reflect.ValueOf(v)
	shape, elem, err := shapeOf(r)
	if err != nil {
		return Tensor{}, err
	}
	switch elem.Kind() {
	case reflect.Int:
		return newInt(r, shape)
	case reflect.Bool:
		return collect[bool](r, shape)
	case reflect.Int8:
		return collect[int8](r, shape)
	case reflect.Int16:
		return collect[int16](r, shape)
	case reflect.Int32:
		return collect[int32](r, shape)
	case reflect.Int64:
		return collect[int64](r, shape)
	case reflect.Uint8:
		return collect[uint8](r, shape)
	case reflect.Uint16:
		return collect[uint16](r, shape)
	case reflect.Uint32:
		return collect[uint32](r, shape)
	case reflect.Uint64:
		return collect[uint64](r, shape)
	case reflect.Float32:
		return collect[float32](r, shape)
	case reflect.Float64:
		return collect[float64](r, shape)
	case reflect.Complex64:
		return collect[complex64](r, shape)
	case reflect.Complex128:
		return collect[complex128](r, shape)
	case reflect.String:
		return collect[string](r, shape)
	default:
		return Tensor{}, status.InvalidArgumentf("cannot make a tensor of %T", v)
	}
}

// shapeOf follows the first element of each depth; collect finds ragged values.
func shapeOf(r reflect.Value) (Shape, reflect.Type, error) {
	if !r.IsValid() {
		return nil, nil, status.InvalidArgumentf("cannot make a tensor of nil")
	}
	shape, t := Shape{}, r.Type()
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		n := 0
		if r.IsValid() {
			n = r.Len()
		}
		shape = append(shape, int64(n))
		t = t.Elem()
		if n > 0 {
			r = r.Index(0)
		} else {
			r = reflect.Value{}
		}
	}
	return shape, t, nil
}

func collect[T Elem](r reflect.Value, shape Shape) (Tensor, error) {
	vals := make([]T, 0, shape.NumElements())
	err := walk(r, shape, func(x reflect.Value) {
		vals = append(vals, x.Convert(reflect.TypeFor[T]()).Interface().(T))
	})
	if err != nil {
		return Tensor{}, err
	}
	return FromSlice(shape, vals)
}

func newInt(r reflect.Value, shape Shape) (Tensor, error) {
	fits := true
	err := walk(r, shape, func(x reflect.Value) { fits = fits && x.Int() == int64(int32(x.Int())) })
	if err != nil {
		return Tensor{}, err
	}
	if fits {
		return collect[int32](r, shape)
	}
	return collect[int64](r, shape)
}

func walk(r reflect.Value, shape Shape, visit func(reflect.Value)) error {
	if len(shape) == 0 {
		visit(r)
		return nil
	}
	if int64(r.Len()) != shape[0] {
		return status.InvalidArgumentf("a tensor cannot have rows of %d and of %d values", shape[0], r.Len())
	}
	for i := range r.Len() {
		if err := walk(r.Index(i), shape[1:], visit); err != nil {
			return err
		}
	}
	return nil
}

// Go returns the values of t as Go values: a scalar, or slices nested to the depth of its rank. The values are copied.
func (t *Tensor) Go() any {
	switch t.dtype {
	case Float32:
		return nest[float32](t)
	case Float64:
		return nest[float64](t)
	case Int8:
		return nest[int8](t)
	case Int16:
		return nest[int16](t)
	case Int32:
		return nest[int32](t)
	case Int64:
		return nest[int64](t)
	case Uint8:
		return nest[uint8](t)
	case Uint16:
		return nest[uint16](t)
	case Uint32:
		return nest[uint32](t)
	case Uint64:
		return nest[uint64](t)
	case Bool:
		return nest[bool](t)
	case String:
		return nest[string](t)
	case Complex64:
		return nest[complex64](t)
	case Complex128:
		return nest[complex128](t)
	case Float16:
		return nest[Half](t)
	case BFloat16:
		return nest[BFloat](t)
	default:
		return nil
	}
}

func nest[T Elem](t *Tensor) any {
	typ := reflect.TypeFor[T]()
	for range t.shape {
		typ = reflect.SliceOf(typ)
	}
	flat := reflect.ValueOf(Values[T](t))
	var build func(typ reflect.Type, shape Shape, lo int) reflect.Value
	build = func(typ reflect.Type, shape Shape, lo int) reflect.Value {
		if len(shape) == 0 {
			return flat.Index(lo)
		}
		n, row := int(shape[0]), int(shape[1:].NumElements())
		out := reflect.MakeSlice(typ, n, n)
		for i := range n {
			out.Index(i).Set(build(typ.Elem(), shape[1:], lo+i*row))
		}
		return out
	}
	return build(typ, t.shape, 0).Interface()
}
