package math

import (
	"math/cmplx"

	"github.com/weft-ml/weft/internal/elementwise"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// unaryGrad registers the gradient of an elementwise function in terms of its result y: dy times the derivative.
func unaryGrad(name, doc string, tables ...kernel.Table) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"y: T", "dy: T"}, Out: []string{"z: T"},
			Attrs: []string{"T: " + floatsComplex}, Shape: opdef.MergedShape,
		},
		Kernels: byT(elementwise.Union(tables...)),
	})
}

func init() {
	unaryGrad("TanhGrad", "Gradient of Tanh: dy*(1 - y²).",
		elementwise.FloatLoops2(cheap, flip(simd.TanhGrad[float32]), flip(simd.TanhGrad[float64])),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * (1 - y*y) }))
	unaryGrad("SigmoidGrad", "Gradient of Sigmoid: dy*y*(1 - y).",
		elementwise.FloatLoops2(cheap, flip(simd.SigmoidGrad[float32]), flip(simd.SigmoidGrad[float64])),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * y * (1 - y) }))
	unaryGrad("SqrtGrad", "Gradient of Sqrt: dy/(2y).",
		elementwise.Floats2(medium, func(y, dy float64) float64 { return dy * 0.5 / y }),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * 0.5 / cmplx.Conj(y) }))
	unaryGrad("RsqrtGrad", "Gradient of Rsqrt: -dy*y³/2.",
		elementwise.Floats2(medium, func(y, dy float64) float64 { return dy * -0.5 * y * y * y }),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return dy * -0.5 * cmplx.Conj(y*y*y) }))
	reciprocal := elementwise.Union(
		elementwise.Floats2(medium, func(y, dy float64) float64 { return -dy * y * y }),
		elementwise.Complexes2(medium, func(y, dy complex128) complex128 { return -dy * cmplx.Conj(y*y) }))
	unaryGrad("ReciprocalGrad", "Gradient of Reciprocal: -dy*y².", reciprocal)
	unaryGrad("InvGrad", "Gradient of Inv: -dy*y².", reciprocal)
}

// flip adapts a vector loop, which takes the gradient first.
func flip[T simd.Float](loop func(dst, grad, y []T)) func(z, y, dy []T) {
	return func(z, y, dy []T) { loop(z, dy, y) }
}
