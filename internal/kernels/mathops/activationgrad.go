package mathops

import (
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// unaryGrad registers the gradient of an elementwise function in terms of its result y: dy times
// the derivative.
func unaryGrad(name, doc string, tables ...kernel.Table) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"y: T", "dy: T"}, Out: []string{"z: T"},
			Attrs: []string{"T: " + floatsComplex}, Shape: opdef.SameShape,
		},
		Kernels: byT(sameCount(elementwise.Union(tables...))),
	})
}

func init() {
	unaryGrad("TanhGrad", "Computes the gradient of Tanh: dy*(1 - y²).",
		elementwise.FloatLoops2(cheap, flip(simd.TanhGrad[float32]), flip(simd.TanhGrad[float64])),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * (1 - y*y) }))
	unaryGrad("SigmoidGrad", "Computes the gradient of Sigmoid: dy*y*(1 - y).",
		elementwise.FloatLoops2(cheap, flip(simd.SigmoidGrad[float32]), flip(simd.SigmoidGrad[float64])),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * y * (1 - y) }))
	scaledGrad("SqrtGrad", "Computes the gradient of Sqrt: dy/(2y), and 0 if dy is 0.",
		func(y, dy float64) float64 { return dy * 0.5 / y },
		func(y, dy complex128) complex128 { return dy * 0.5 / y })
	scaledGrad("RsqrtGrad", "Computes the gradient of Rsqrt: -dy*y³/2, and 0 if dy is 0.",
		func(y, dy float64) float64 { return dy * -0.5 * y * y * y },
		func(y, dy complex128) complex128 { return dy * -0.5 * (y * y * y) })
	for name, of := range map[string]string{"ReciprocalGrad": "Reciprocal", "InvGrad": "Inv"} {
		scaledGrad(name, "Gradient of "+of+": -dy*y², and 0 where dy is.",
			func(y, dy float64) float64 { return -dy * y * y },
			func(y, dy complex128) complex128 { return -dy * (y * y) })
	}
}

// scaledGrad registers a gradient that is 0 where dy is 0, for any y. The complex function receives
// the conjugate of y.
func scaledGrad(name, doc string, f func(y, dy float64) float64, c func(y, dy complex128) complex128) {
	unaryGrad(name, doc,
		elementwise.Floats2(medium, func(y, dy float64) float64 {
			if dy == 0 {
				return 0
			}
			return f(y, dy)
		}),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 {
			if dy == 0 {
				return 0
			}
			return c(cmplx.Conj(y), dy)
		}))
}

// sameCount makes kernels accept inputs of different shapes with equal numbers of elements. The
// result has the shape of the first.
func sameCount(t kernel.Table) kernel.Table {
	for dtype, n := range t {
		t[dtype] = func(c *kernel.Construction) (kernel.Kernel, error) {
			k, err := n(c)
			if err != nil {
				return nil, err
			}
			return kernel.Func(func(ctx *kernel.Context) error {
				x, y := ctx.Input(0), ctx.Input(1)
				if x.Shape().Equal(y.Shape()) {
					return k.Compute(ctx)
				}
				if x.NumElements() != y.NumElements() {
					return status.InvalidArgumentf("The two arguments to a cwise op must have same number of elements, got %d and %d",
						x.NumElements(), y.NumElements())
				}
				if *y, err = y.WithShape(x.Shape()); err != nil {
					return err
				}
				return k.Compute(ctx)
			}), nil
		}
	}
	return t
}

// flip adapts a vector loop whose first input is the gradient.
func flip[T simd.Float](loop func(dst, grad, y []T)) func(z, y, dy []T) {
	return func(z, y, dy []T) { loop(z, dy, y) }
}
