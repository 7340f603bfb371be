package mathops

import (
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Type sets of the operations in this package.
const (
	floats         = "{bfloat16, float16, float32, float64}"
	floatsComplex  = "{bfloat16, float16, float32, float64, complex64, complex128}"
	signedNumbers  = "{bfloat16, float16, float32, float64, int8, int16, int32, int64}"
	signedsComplex = "{bfloat16, float16, float32, float64, int8, int16, int32, int64, complex64, complex128}"
)

// unary registers an elementwise operation on one tensor of type T.
func unary(name, doc, types string, tables ...kernel.Table) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"x: T"}, Out: []string{"y: T"},
			Attrs: []string{"T: " + types}, Shape: opdef.SameShape,
		},
		Kernels: byT(allowed(types, elementwise.Union(tables...))),
	})
}

// vectorLoops returns the kernels for real floating-point types from vector code for float32 and
// float64.
func vectorLoops(cost float64, loop32 func(z, x []float32), loop64 func(z, x []float64)) kernel.Table {
	return elementwise.FloatLoops(cost, loop32, loop64)
}

// function returns the kernels of a function in package math for real floating-point types, and of
// one in math/cmplx for complex types.
func function(f func(float64) float64, c func(complex128) complex128) kernel.Table {
	return elementwise.Union(elementwise.Floats(costly, f), elementwise.Complexes(3*costly, c))
}

func init() {
	unary("Neg", "Negates each element.", signedsComplex, vectorLoops(cheap, simd.Neg[float32], simd.Neg[float64]),
		signed(negate[int8], negate[int16], negate[int32], negate[int64]),
		elementwise.Complexes(cheap, func(x complex128) complex128 { return -x }))
	unary("Abs", "Computes the absolute value of each element.", signedNumbers, vectorLoops(cheap, simd.Abs[float32], simd.Abs[float64]),
		signed(absolute[int8], absolute[int16], absolute[int32], absolute[int64]))
	unary("Sign", "-1, 0 or 1 by the sign of every element; x/|x| for complex ones.", signedsComplex,
		vectorLoops(cheap, simd.Sign[float32], simd.Sign[float64]), signed(signum[int8], signum[int16], signum[int32], signum[int64]),
		elementwise.Complexes(costly, func(x complex128) complex128 {
			if x == 0 {
				return 0
			}
			return x / complex(cmplx.Abs(x), 0)
		}))
	squares := elementwise.Union(vectorLoops(cheap, simd.Square[float32], simd.Square[float64]),
		signed(square[int8], square[int16], square[int32], square[int64]),
		unsigned(square[uint8], square[uint16], square[uint32], square[uint64]),
		elementwise.Complexes(cheap, func(x complex128) complex128 { return x * x }))
	unary("Square", "Computes the square of each element.",
		"{bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}", squares)
	unary("Sqrt", "Computes the square root of each element.", floatsComplex, vectorLoops(cheap, simd.Sqrt[float32], simd.Sqrt[float64]),
		elementwise.Complexes(costly, cmplx.Sqrt))
	unary("Rsqrt", "Computes the reciprocal of the square root of each element.", floatsComplex,
		vectorLoops(cheap, simd.Rsqrt[float32], simd.Rsqrt[float64]),
		elementwise.Complexes(costly, func(x complex128) complex128 { return 1 / cmplx.Sqrt(x) }))
	inverse := elementwise.Union(vectorLoops(cheap, simd.Reciprocal[float32], simd.Reciprocal[float64]),
		signed(invert[int8], invert[int16], invert[int32], invert[int64]),
		elementwise.Complexes(medium, func(x complex128) complex128 { return 1 / x }))
	unary("Reciprocal", "1/x for every element.", signedsComplex, inverse)
	unary("Inv", "1/x for every element.", signedsComplex, inverse)
	unary("Exp", "e to the power of every element.", floatsComplex, vectorLoops(medium, simd.Exp[float32], simd.Exp[float64]),
		elementwise.Complexes(3*costly, cmplx.Exp))
	unary("Log", "Computes the natural logarithm of each element.", floatsComplex, vectorLoops(medium, simd.Log[float32], simd.Log[float64]),
		elementwise.Complexes(3*costly, cmplx.Log))
	unary("Tanh", "Computes the hyperbolic tangent of each element.", floatsComplex, vectorLoops(medium, simd.Tanh[float32], simd.Tanh[float64]),
		elementwise.Complexes(3*costly, complexTanh))
	unary("Sigmoid", "1/(1+exp(-x)) for every element.", floatsComplex,
		vectorLoops(medium, simd.Sigmoid[float32], simd.Sigmoid[float64]),
		elementwise.Complexes(3*costly, func(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) }))
	unary("Expm1", "exp(x)-1 for every element, accurate near zero.", floatsComplex,
		vectorLoops(medium, simd.Expm1[float32], simd.Expm1[float64]),
		elementwise.Complexes(3*costly, func(x complex128) complex128 { return cmplx.Exp(x) - 1 }))
	unary("Log1p", "log(1+x) for every element, accurate near zero.", floatsComplex,
		vectorLoops(medium, simd.Log1p[float32], simd.Log1p[float64]),
		elementwise.Complexes(3*costly, func(x complex128) complex128 { return cmplx.Log(1 + x) }))
	unary("Sin", "Computes the sine of each element, in radians.", floatsComplex, vectorLoops(medium, simd.Sin[float32], simd.Sin[float64]),
		elementwise.Complexes(3*costly, cmplx.Sin))
	unary("Cos", "Computes the cosine of each element, in radians.", floatsComplex, vectorLoops(medium, simd.Cos[float32], simd.Cos[float64]),
		elementwise.Complexes(3*costly, cmplx.Cos))
	unary("Sinh", "Computes the hyperbolic sine of each element.", floatsComplex, function(math.Sinh, cmplx.Sinh))
	unary("Cosh", "Computes the hyperbolic cosine of each element.", floatsComplex, function(math.Cosh, cmplx.Cosh))
	unary("Asinh", "Computes the inverse hyperbolic sine of each element.", floatsComplex, function(math.Asinh, complexAsinh))
	unary("Acosh", "Computes the inverse hyperbolic cosine of each element.", floatsComplex, function(math.Acosh, complexAcosh))
	unary("Atanh", "Computes the inverse hyperbolic tangent of each element.", floatsComplex, function(math.Atanh, complexAtanh))
}

func init() {
	unary("Tan", "Computes the tangent of each element, in radians.", floatsComplex, function(math.Tan, complexTan))
	unary("Asin", "Computes the inverse sine of each element.", floatsComplex, function(math.Asin, complexAsin))
	unary("Acos", "Computes the inverse cosine of each element.", floatsComplex, function(math.Acos, complexAcos))
	unary("Atan", "Computes the inverse tangent of each element.", floatsComplex, function(math.Atan, complexAtan))
	unary("Floor", "Computes the largest integer not greater than each element.", floats, vectorLoops(cheap, simd.Floor[float32], simd.Floor[float64]))
	unary("Ceil", "Computes the smallest integer not less than each element.", floats, vectorLoops(cheap, simd.Ceil[float32], simd.Ceil[float64]))
	nearest := vectorLoops(cheap, simd.Rint[float32], simd.Rint[float64])
	unary("Rint", "Rounds each element to the nearest integer, and halves to the even one.", floats, nearest)
	unary("Round", "Rounds each element to the nearest integer, and halves to the even one.", signedsComplex, nearest,
		signed(identity[int8], identity[int16], identity[int32], identity[int64]),
		elementwise.Complexes(medium, func(x complex128) complex128 {
			return complex(math.RoundToEven(real(x)), math.RoundToEven(imag(x)))
		}))
	unary("Erf", "Computes the error function of each element.", floats, vectorLoops(medium, simd.Erf[float32], simd.Erf[float64]))
	unary("Erfc", "1 - erf(x) for every element.", floats, elementwise.Floats(costly, math.Erfc))
	unary("Lgamma", "Computes the logarithm of the absolute value of the gamma function of each element.", floats,
		elementwise.Floats(2*costly, func(x float64) float64 {
			v, _ := math.Lgamma(x)
			if math.IsInf(x, -1) {
				return -x
			}
			return v
		}))
	predicate("IsNan", "Returns whether each element is NaN.", isNaN[float32], isNaN[float64])
	predicate("IsInf", "Returns whether each element is infinite.", ofMagnitude[float32](simd.Equal), ofMagnitude[float64](simd.Equal))
	predicate("IsFinite", "Returns whether each element is finite.", ofMagnitude[float32](simd.Less), ofMagnitude[float64](simd.Less))
}

// predicate registers an operation that tests every element.
func predicate(name, doc string, loop32 func(z []bool, x []float32), loop64 func(z []bool, x []float64)) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: name, Doc: doc, In: []string{"x: T"}, Out: []string{"y: bool"}, Attrs: []string{"T: " + floats},
			Shape: opdef.SameShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float16:  elementwise.Unary(medium, elementwise.Via32To[tensor.Float16Elem](loop32)),
			tensor.BFloat16: elementwise.Unary(medium, elementwise.Via32To[tensor.BFloat16Elem](loop32)),
			tensor.Float32:  elementwise.Unary(cheap, loop32),
			tensor.Float64:  elementwise.Unary(cheap, loop64),
		}),
	})
}

func isNaN[T simd.Float](z []bool, x []T) { simd.Compare(simd.NotEqual, z, x, x) }

// ofMagnitude returns the loop that compares absolute values with infinity.
func ofMagnitude[T simd.Float](p simd.Predicate) func(z []bool, x []T) {
	return func(z []bool, x []T) { simd.CompareMagnitude(p, z, x, T(math.Inf(1))) }
}

func signed(f8 func(int8) int8, f16 func(int16) int16, f32 func(int32) int32, f64 func(int64) int64) kernel.Table {
	return kernel.Table{
		tensor.Int8: elementwise.Unary(cheap, elementwise.Map(f8)), tensor.Int16: elementwise.Unary(cheap, elementwise.Map(f16)),
		tensor.Int32: elementwise.Unary(cheap, elementwise.Map(f32)), tensor.Int64: elementwise.Unary(cheap, elementwise.Map(f64)),
	}
}

func unsigned(f8 func(uint8) uint8, f16 func(uint16) uint16, f32 func(uint32) uint32, f64 func(uint64) uint64) kernel.Table {
	return kernel.Table{
		tensor.Uint8: elementwise.Unary(cheap, elementwise.Map(f8)), tensor.Uint16: elementwise.Unary(cheap, elementwise.Map(f16)),
		tensor.Uint32: elementwise.Unary(cheap, elementwise.Map(f32)), tensor.Uint64: elementwise.Unary(cheap, elementwise.Map(f64)),
	}
}

func negate[T elementwise.Signed](x T) T   { return -x }
func identity[T elementwise.Signed](x T) T { return x }
func square[T elementwise.Integer](x T) T  { return x * x }
func absolute[T elementwise.Signed](x T) T { return max(x, -x) }

func signum[T elementwise.Signed](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// invert computes 1/x for integers: 0 unless x is ±1. Division by zero returns 0 instead of a
// hardware trap.
func invert[T elementwise.Signed](x T) T {
	if x == 0 {
		return 0
	}
	return 1 / x
}
