package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const real = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64}"
	for _, c := range []struct {
		name, doc string
		order     simd.Predicate
	}{
		{"Less", "Returns whether x < y, element by element, with broadcasting.", simd.Less},
		{"LessEqual", "Returns whether x <= y, element by element, with broadcasting.", simd.LessEqual},
		{"Greater", "Returns whether x > y, element by element, with broadcasting.", simd.Greater},
		{"GreaterEqual", "Returns whether x >= y, element by element, with broadcasting.", simd.GreaterEqual},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: c.name, Doc: c.doc, In: []string{"x: T", "y: T"}, Out: []string{"z: bool"},
				Attrs: []string{"T: " + real}, Shape: opdef.BroadcastShape,
			},
			Kernels: byT(comparisons(c.order)),
		})
	}
	logical("LogicalAnd", "Returns whether x and y are both true, element by element, with broadcasting.", simd.And)
	logical("LogicalOr", "Returns whether x or y is true, element by element, with broadcasting.", simd.Or)
	kernel.RegisterNew(opdef.Def{
		Name: "LogicalNot", Doc: "Returns whether x is false, element by element.",
		In: []string{"x: bool"}, Out: []string{"y: bool"}, Shape: opdef.SameShape,
	}, elementwise.Unary(cheap, simd.Not))
}

func comparisons(p simd.Predicate) kernel.Table {
	t := kernel.Table{}
	row(t, vectorCompare[float32](p))
	row(t, vectorCompare[float64](p))
	compare[int8](t, p)
	compare[int16](t, p)
	row(t, elementwise.Loops[int32, bool]{Each: compareInts[int32](p), Cost: cheap})
	row(t, elementwise.Loops[int64, bool]{Each: compareInts[int64](p), Cost: cheap})
	compare[uint8](t, p)
	compare[uint16](t, p)
	compare[uint32](t, p)
	compare[uint64](t, p)
	row(t, elementwise.Loops[tensor.Float16Elem, bool]{Each: elementwise.Via32BinaryTo[tensor.Float16Elem](vectorCompare[float32](p).Each), Cost: medium})
	row(t, elementwise.Loops[tensor.BFloat16Elem, bool]{Each: elementwise.Via32BinaryTo[tensor.BFloat16Elem](vectorCompare[float32](p).Each), Cost: medium})
	return t
}

// vectorCompare returns the loops of a comparison in vector code.
func vectorCompare[T elementwise.Float](p simd.Predicate) elementwise.Loops[T, bool] {
	flipped := map[simd.Predicate]simd.Predicate{
		simd.Less: simd.Greater, simd.LessEqual: simd.GreaterEqual, simd.Greater: simd.Less, simd.GreaterEqual: simd.LessEqual,
	}
	back, ok := flipped[p]
	if !ok {
		back = p
	}
	return elementwise.Loops[T, bool]{
		Each:  func(z []bool, x, y []T) { simd.Compare(p, z, x, y) },
		Left:  func(z []bool, x T, y []T) { simd.CompareScalar(back, z, y, x) },
		Right: func(z []bool, x []T, y T) { simd.CompareScalar(p, z, x, y) },
		Cost:  cheap,
	}
}

func compareInts[T simd.Int](p simd.Predicate) func(z []bool, x, y []T) {
	return func(z []bool, x, y []T) { simd.CompareInts(p, z, x, y) }
}

func compare[T interface {
	elementwise.Real
	tensor.Elem
}](t kernel.Table, p simd.Predicate) {
	row(t, elementwise.Loops[T, bool]{Each: ordered[T](p), Cost: cheap})
}

func ordered[T elementwise.Real](p simd.Predicate) func(z []bool, x, y []T) {
	switch p {
	case simd.Less:
		return func(z []bool, x, y []T) {
			x, y = x[:len(z)], y[:len(z)]
			for i := range z {
				z[i] = x[i] < y[i]
			}
		}
	case simd.LessEqual:
		return func(z []bool, x, y []T) {
			x, y = x[:len(z)], y[:len(z)]
			for i := range z {
				z[i] = x[i] <= y[i]
			}
		}
	case simd.Greater:
		return func(z []bool, x, y []T) {
			x, y = x[:len(z)], y[:len(z)]
			for i := range z {
				z[i] = x[i] > y[i]
			}
		}
	default:
		return func(z []bool, x, y []T) {
			x, y = x[:len(z)], y[:len(z)]
			for i := range z {
				z[i] = x[i] >= y[i]
			}
		}
	}
}

func logical(name, doc string, loop func(z, x, y []bool)) {
	kernel.RegisterNew(opdef.Def{
		Name: name, Doc: doc, In: []string{"x: bool", "y: bool"}, Out: []string{"z: bool"},
		Commutative: true, Shape: opdef.BroadcastShape,
	}, elementwise.Loops[bool, bool]{Each: loop, Cost: cheap}.Kernel())
}
