package math

import (
	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// order is what a comparison asks of two numbers.
type order int

const (
	less order = iota
	lessEqual
	greater
	greaterEqual
)

func init() {
	const real = "{float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, uint64}"
	for _, c := range []struct {
		name, doc string
		order     order
	}{
		{"Less", "Whether x < y, element by element, with broadcasting.", less},
		{"LessEqual", "Whether x <= y, element by element, with broadcasting.", lessEqual},
		{"Greater", "Whether x > y, element by element, with broadcasting.", greater},
		{"GreaterEqual", "Whether x >= y, element by element, with broadcasting.", greaterEqual},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: c.name, Doc: c.doc, In: []string{"x: T", "y: T"}, Out: []string{"z: bool"},
				Attrs: []string{"T: " + real}, Shape: opdef.BroadcastShape,
			},
			Kernels: byT(comparisons(c.order)),
		})
	}
	logical("LogicalAnd", "Whether x and y are both true, element by element, with broadcasting.", func(x, y bool) bool { return x && y })
	logical("LogicalOr", "Whether x or y is true, element by element, with broadcasting.", func(x, y bool) bool { return x || y })
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "LogicalNot", Doc: "Whether x is false, element by element.",
			In: []string{"x: bool"}, Out: []string{"y: bool"}, Shape: opdef.SameShape,
		},
		Kernels: kernel.Any(elementwise.Unary(cheap, elementwise.Map(func(x bool) bool { return !x }))),
	})
}

func comparisons(o order) kernel.Table {
	t := kernel.Table{}
	compare[float32](t, o)
	compare[float64](t, o)
	compare[int8](t, o)
	compare[int16](t, o)
	compare[int32](t, o)
	compare[int64](t, o)
	compare[uint8](t, o)
	compare[uint16](t, o)
	compare[uint32](t, o)
	compare[uint64](t, o)
	row(t, elementwise.Loops[tensor.Half, bool]{Each: elementwise.Via32BinaryTo[tensor.Half](ordered[float32](o)), Cost: medium})
	row(t, elementwise.Loops[tensor.BFloat, bool]{Each: elementwise.Via32BinaryTo[tensor.BFloat](ordered[float32](o)), Cost: medium})
	return t
}

func compare[T interface {
	elementwise.Real
	tensor.Elem
}](t kernel.Table, o order) {
	row(t, elementwise.Loops[T, bool]{Each: ordered[T](o), Cost: cheap})
}

func ordered[T elementwise.Real](o order) func(z []bool, x, y []T) {
	switch o {
	case less:
		return func(z []bool, x, y []T) {
			for i := range z {
				z[i] = x[i] < y[i]
			}
		}
	case lessEqual:
		return func(z []bool, x, y []T) {
			for i := range z {
				z[i] = x[i] <= y[i]
			}
		}
	case greater:
		return func(z []bool, x, y []T) {
			for i := range z {
				z[i] = x[i] > y[i]
			}
		}
	default:
		return func(z []bool, x, y []T) {
			for i := range z {
				z[i] = x[i] >= y[i]
			}
		}
	}
}

func logical(name, doc string, f func(x, y bool) bool) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"x: bool", "y: bool"}, Out: []string{"z: bool"},
			Commutative: true, Shape: opdef.BroadcastShape,
		},
		Kernels: kernel.Any(elementwise.Loops[bool, bool]{Each: elementwise.Map2(f), Cost: cheap}.Kernel()),
	})
}
