package tensor

import (
	"reflect"

	"github.com/weft-ml/weft/status"
)

// goTypes are the conversions from and to Go values of each element type.
var goTypes = map[DType]goType{
	Float32: goTypeOf[float32](), Float64: goTypeOf[float64](), Int8: goTypeOf[int8](), Int16: goTypeOf[int16](),
	Int32: goTypeOf[int32](), Int64: goTypeOf[int64](), Uint8: goTypeOf[uint8](), Uint16: goTypeOf[uint16](),
	Uint32: goTypeOf[uint32](), Uint64: goTypeOf[uint64](), Bool: goTypeOf[bool](), String: goTypeOf[string](),
	Complex64: goTypeOf[complex64](), Complex128: goTypeOf[complex128](), Float16: goTypeOf[Half](), BFloat16: goTypeOf[BFloat](),
	QInt8: goTypeOf[QI8](), QUint8: goTypeOf[QU8](), QInt16: goTypeOf[QI16](), QUint16: goTypeOf[QU16](), QInt32: goTypeOf[QI32](),
	Float8E5M2: goTypeOf[F8E5M2](), Float8E4M3: goTypeOf[F8E4M3](), Int4: goTypeOf[Nibble](), Uint4: goTypeOf[UNibble](),
	Resource: goTypeOf[*Handle](), Variant: goTypeOf[VariantValue](),
}

type goType struct {
	elem    reflect.Type
	collect func(r reflect.Value, shape Shape) (Tensor, error)
	nest    func(t *Tensor) any
}

func goTypeOf[T Elem]() goType { return goType{reflect.TypeFor[T](), collect[T], nest[T]} }

// New returns a tensor with the values of v: a Go scalar, or slices or arrays of one nested to any
// depth, all of the same length at each depth. int is taken as int32 where every value fits, as
// TensorFlow's clients do, and as int64 otherwise. The values are copied, except that a flat slice
// of an element type is shared.
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

// goTypeFor returns the element type that a Go type stands for: its own, or that of the type it is
// defined by.
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

// rows visits the slices or arrays of the innermost depth in order; a scalar is visited as a slice
// of one.
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
// for a tensor that is not initialized. The values are copied.
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
