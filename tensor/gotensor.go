package tensor

import (
	"reflect"

	"github.com/weft-ml/weft/status"
)

// goTypes holds the conversions to and from Go values by element type.
var goTypes = map[DType]goType{
	Float32: goTypeOf[float32](), Float64: goTypeOf[float64](), Int8: goTypeOf[int8](), Int16: goTypeOf[int16](),
	Int32: goTypeOf[int32](), Int64: goTypeOf[int64](), Uint8: goTypeOf[uint8](), Uint16: goTypeOf[uint16](),
	Uint32: goTypeOf[uint32](), Uint64: goTypeOf[uint64](), Bool: goTypeOf[bool](), String: goTypeOf[string](),
	Complex64: goTypeOf[complex64](), Complex128: goTypeOf[complex128](), Float16: goTypeOf[Float16Elem](), BFloat16: goTypeOf[BFloat16Elem](),
	QInt8: goTypeOf[QInt8Elem](), QUint8: goTypeOf[QUint8Elem](), QInt16: goTypeOf[QInt16Elem](), QUint16: goTypeOf[QUint16Elem](), QInt32: goTypeOf[QInt32Elem](),
	Float8E5M2: goTypeOf[Float8E5M2Elem](), Float8E4M3: goTypeOf[Float8E4M3Elem](), Int4: goTypeOf[Int4Elem](), Uint4: goTypeOf[Uint4Elem](),
	Resource: goTypeOf[*Handle](), Variant: goTypeOf[VariantValue](),
}

type goType struct {
	elem    reflect.Type
	collect func(r reflect.Value, shape Shape) (Tensor, error)
	nest    func(t *Tensor) any
}

func goTypeOf[T Elem]() goType { return goType{reflect.TypeFor[T](), collect[T], nest[T]} }

// New returns a tensor with the values of v: a Go scalar, or nested slices or arrays of equal
// length at each depth. int becomes int32 if every value fits, as in TensorFlow's clients, and
// int64 otherwise. The values are copied, except that a flat slice of an element type is shared.
// The error has the code InvalidArgument for other values.
func New(v any) (Tensor, error) {
	switch v := v.(type) {
	case Tensor:
		return v, nil
	case *Tensor:
		return *v, nil
	}
	r := reflect.ValueOf(v)
	shape, elem, err := shapeOf(r)
	if err != nil {
		return Tensor{}, err
	}
	if elem.Kind() == reflect.Int {
		return newInt(r, shape)
	}
	if g, ok := goTypeFor(elem); ok {
		return g.collect(r, shape)
	}
	return Tensor{}, status.InvalidArgumentf("cannot make a tensor of %T", v)
}

// goTypeFor returns the element type for a Go type or for the type that defines it.
func goTypeFor(elem reflect.Type) (goType, bool) {
	var found goType
	for _, g := range goTypes {
		if g.elem == elem {
			return g, true
		}
		if g.elem.Kind() == elem.Kind() && g.elem.PkgPath() == "" && elem.Kind() != reflect.Pointer {
			found = g
		}
	}
	return found, found.elem != nil
}

// shapeOf returns the shape by following the first element of each depth. Ragged values are
// detected later, by collect.
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
	if flat, ok := reflect.TypeAssert[[]T](r); ok {
		return FromSlice(shape, flat)
	}
	vals := make([]T, 0, shape.NumElements())
	err := rows(r, shape, func(row reflect.Value) {
		if same, ok := reflect.TypeAssert[[]T](row); ok {
			vals = append(vals, same...)
			return
		}
		for i := range row.Len() {
			vals = append(vals, row.Index(i).Convert(reflect.TypeFor[T]()).Interface().(T))
		}
	})
	if err != nil {
		return Tensor{}, err
	}
	return FromSlice(shape, vals)
}

func newInt(r reflect.Value, shape Shape) (Tensor, error) {
	fits := true
	err := rows(r, shape, func(row reflect.Value) {
		for i := range row.Len() {
			x := row.Index(i).Int()
			fits = fits && x == int64(int32(x))
		}
	})
	if err != nil {
		return Tensor{}, err
	}
	if fits {
		return collect[int32](r, shape)
	}
	return collect[int64](r, shape)
}

// rows calls visit with the slices or arrays of the innermost depth, in order. A scalar is visited
// as a slice of one element.
func rows(r reflect.Value, shape Shape, visit func(reflect.Value)) error {
	if len(shape) == 0 {
		one := reflect.MakeSlice(reflect.SliceOf(r.Type()), 1, 1)
		one.Index(0).Set(r)
		visit(one)
		return nil
	}
	if int64(r.Len()) != shape[0] {
		return status.InvalidArgumentf("a tensor cannot have rows of %d and of %d values", shape[0], r.Len())
	}
	if len(shape) == 1 {
		visit(r)
		return nil
	}
	for i := range r.Len() {
		if err := rows(r.Index(i), shape[1:], visit); err != nil {
			return err
		}
	}
	return nil
}

// Go returns the values of t as Go values: a scalar, or slices nested to the depth of its rank; nil
// for an uninitialized tensor. The values are copied.
func (t *Tensor) Go() any {
	if g, ok := goTypes[t.dtype]; ok {
		return g.nest(t)
	}
	return nil
}

func nest[T Elem](t *Tensor) any {
	flat := Values[T](t)
	if len(t.shape) == 0 {
		return flat[0]
	}
	typ := reflect.TypeFor[T]()
	for range t.shape {
		typ = reflect.SliceOf(typ)
	}
	var build func(typ reflect.Type, shape Shape, lo int) reflect.Value
	build = func(typ reflect.Type, shape Shape, lo int) reflect.Value {
		n, row := int(shape[0]), int(shape[1:].NumElements())
		if len(shape) == 1 {
			return reflect.ValueOf(append(make([]T, 0, n), flat[lo:lo+n]...))
		}
		out := reflect.MakeSlice(typ, n, n)
		for i := range n {
			out.Index(i).Set(build(typ.Elem(), shape[1:], lo+i*row))
		}
		return out
	}
	return build(typ, t.shape, 0).Interface()
}
