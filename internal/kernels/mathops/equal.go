package mathops

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	equality("Equal", "Returns whether x and y are equal, element by element, with broadcasting.", false)
	equality("NotEqual", "Returns whether x and y differ, element by element, with broadcasting.", true)
}

func equality(name, doc string, negate bool) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"x: T", "y: T"}, Out: []string{"z: bool"},
			Attrs: []string{"T: type", "incompatible_shape_error: bool = true"}, Commutative: true, Shape: equalShape,
		},
		Kernels: byT(equalities(negate)),
	})
}

// equalShape is the shape function of equality. With incompatible_shape_error=false, incompatible
// shapes have a scalar result.
func equalShape(c *opdef.ShapeContext) error {
	if c.Attrs.Bool("incompatible_shape_error") {
		return opdef.BroadcastShape(c)
	}
	x, y := c.In[0], c.In[1]
	if !x.RankKnown() || !y.RankKnown() {
		return nil
	}
	for i := 1; i <= min(x.Rank(), y.Rank()); i++ {
		switch a, b := x.Dim(-i), y.Dim(-i); {
		case a == b || a == 1 || b == 1:
		case a < 0 || b < 0: // compatibility is unknown
			return nil
		default:
			c.Out[0] = shapefn.Of()
			return nil
		}
	}
	return opdef.BroadcastShape(c)
}

func equalities(negate bool) kernel.Table {
	t := kernel.Table{}
	p := simd.Equal
	if negate {
		p = simd.NotEqual
	}
	equalRow(t, negate, vectorCompare[float32](p))
	equalRow(t, negate, vectorCompare[float64](p))
	equal[int8](t, negate)
	equal[int16](t, negate)
	equalRow(t, negate, elementwise.Loops[int32, bool]{Each: compareInts[int32](p), Cost: cheap})
	equalRow(t, negate, elementwise.Loops[int64, bool]{Each: compareInts[int64](p), Cost: cheap})
	equal[uint8](t, negate)
	equal[uint16](t, negate)
	equal[uint32](t, negate)
	equal[uint64](t, negate)
	equal[complex64](t, negate)
	equal[complex128](t, negate)
	equal[bool](t, negate)
	equal[string](t, negate)
	equal[tensor.QInt8Elem](t, negate)
	equal[tensor.QUint8Elem](t, negate)
	equal[tensor.QInt16Elem](t, negate)
	equal[tensor.QUint16Elem](t, negate)
	equal[tensor.QInt32Elem](t, negate)
	shorts := vectorCompare[float32](p).Each
	equalRow(t, negate, elementwise.Loops[tensor.Float16Elem, bool]{Each: elementwise.Via32BinaryTo[tensor.Float16Elem](shorts), Cost: medium})
	equalRow(t, negate, elementwise.Loops[tensor.BFloat16Elem, bool]{Each: elementwise.Via32BinaryTo[tensor.BFloat16Elem](shorts), Cost: medium})
	return t
}

// elemComparable is the constraint of element types that Go can compare.
type elemComparable interface {
	tensor.Elem
	comparable
}

func equal[T elemComparable](t kernel.Table, negate bool) {
	equalRow(t, negate, elementwise.Loops[T, bool]{Each: equalLoop[T](negate), Cost: cheap})
}

func equalLoop[T comparable](negate bool) func(z []bool, x, y []T) {
	if negate {
		return func(z []bool, x, y []T) {
			x, y = x[:len(z)], y[:len(z)]
			for i := range z {
				z[i] = x[i] != y[i]
			}
		}
	}
	return func(z []bool, x, y []T) {
		x, y = x[:len(z)], y[:len(z)]
		for i := range z {
			z[i] = x[i] == y[i]
		}
	}
}

// equalRow adds a kernel to t. With incompatible_shape_error=false, the kernel treats tensors of
// incompatible shapes as not equal.
func equalRow[T tensor.Elem](t kernel.Table, negate bool, l elementwise.Loops[T, bool]) {
	t[tensor.DTypeOf[T]()] = func(c *kernel.Construction) (kernel.Kernel, error) {
		if c.Attrs.Bool("incompatible_shape_error") {
			return kernel.Func(l.Compute), nil
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			if _, err := elementwise.Broadcast(ctx.Input(0).Shape(), ctx.Input(1).Shape()); err != nil {
				ctx.SetOutput(0, tensor.Scalar(negate))
				return nil
			}
			return l.Compute(ctx)
		}), nil
	}
}
