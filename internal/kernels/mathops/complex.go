package mathops

import (
	"math/cmplx"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	parts("Real", "Computes the real part of each element.", func(x complex128) float64 { return real(x) })
	parts("Imag", "Computes the imaginary part of each element.", func(x complex128) float64 { return imag(x) })
	parts("Angle", "Computes the argument of each element, in radians.", cmplx.Phase)
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "ComplexAbs", Doc: "Computes the absolute value of each element.", In: []string{"x: T"}, Out: []string{"y: Tout"},
			Attrs: []string{"T: {complex64, complex128} = complex64", "Tout: {float32, float64} = float32"}, Shape: opdef.SameShape,
		},
		Kernels: fromComplexParts(cmplx.Abs),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conj", Doc: "Computes the complex conjugate of each element.", In: []string{"input: T"}, Out: []string{"output: T"},
			Attrs: []string{"T: {complex64, complex128, variant} = complex64"}, Shape: conjShape,
		},
		Kernels: byT(elementwise.Union(elementwise.Complexes(cheap, cmplx.Conj), kernel.Table{tensor.Variant: kernel.Stateless(conjVariants)})),
	})
	join := func(in, out tensor.DType, n kernel.New) kernel.Impl {
		return kernel.Impl{Types: []kernel.Constraint{kernel.OfType("T", in), kernel.OfType("Tout", out)}, New: n}
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Complex", Doc: "Returns complex numbers with the given real and imaginary parts, with broadcasting.",
			In: []string{"real: T", "imag: T"}, Out: []string{"out: Tout"},
			Attrs: []string{"T: {float32, float64} = float32", "Tout: {complex64, complex128} = complex64"}, Shape: opdef.BroadcastShape,
		},
		Kernels: []kernel.Impl{
			join(tensor.Float32, tensor.Complex64, elementwise.Loops[float32, complex64]{
				Each: elementwise.Map2(func(x, y float32) complex64 { return complex(x, y) }), Cost: cheap,
			}.Kernel()),
			join(tensor.Float64, tensor.Complex128, elementwise.Loops[float64, complex128]{
				Each: elementwise.Map2(func(x, y float64) complex128 { return complex(x, y) }), Cost: cheap,
			}.Kernel()),
		},
	})
}

// parts registers an operation that maps each complex element to a real number.
func parts(name, doc string, f func(complex128) float64) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"input: T"}, Out: []string{"output: Tout"},
			Attrs: []string{"T: {complex64, complex128} = complex64", "Tout: {float32, float64} = float32"}, Shape: opdef.SameShape,
		},
		Kernels: fromComplexParts(f),
	})
}

func fromComplexParts(f func(complex128) float64) []kernel.Impl {
	types := func(in, out tensor.DType) []kernel.Constraint {
		return []kernel.Constraint{kernel.OfType("T", in), kernel.OfType("Tout", out)}
	}
	narrow := elementwise.Map(func(x complex64) float32 { return float32(f(complex128(x))) })
	return []kernel.Impl{
		{Types: types(tensor.Complex64, tensor.Float32), New: elementwise.Unary(medium, narrow)},
		{Types: types(tensor.Complex128, tensor.Float64), New: elementwise.Unary(medium, elementwise.Map(f))},
	}
}
