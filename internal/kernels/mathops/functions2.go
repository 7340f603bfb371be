package mathops

import (
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	powers := elementwise.Union(elementwise.FloatLoops2(medium, simd.Pow[float32], simd.Pow[float64]), elementwise.Complexes2(5*costly, cmplx.Pow))
	floatPower[float32](powers, medium)
	floatPower[float64](powers, 3*costly)
	intPower[int8](powers)
	intPower[int16](powers)
	intPower[int32](powers)
	intPower[int64](powers)
	binary(opdef.Def{Name: "Pow", Doc: "Computes x to the power of y, element by element, with broadcasting."},
		"{bfloat16, float32, float16, float64, int8, int16, int32, int64, complex64, complex128}", powers)
	binary(opdef.Def{Name: "Atan2", Doc: "Computes the angle of the point (x, y), element by element, with broadcasting.", In: []string{"y: T", "x: T"}},
		floats, elementwise.Floats2(2*costly, math.Atan2))
	const types = "{float16, bfloat16, float32, float64, complex64, complex128}"
	binary(opdef.Def{Name: "Xdivy", Doc: "Computes x/y, and 0 if x is 0."}, types,
		zeroFirst(func(x, y float64) float64 { return x / y }, func(x, y complex128) complex128 { return x / y }))
	binary(opdef.Def{Name: "Xlogy", Doc: "Computes x*log(y), and 0 if x is 0."}, types,
		timesFunction(math.Log, cmplx.Log))
	binary(opdef.Def{Name: "Xlog1py", Doc: "Computes x*log(1+y), and 0 if x is 0."}, types,
		timesFunction(math.Log1p, func(y complex128) complex128 { return cmplx.Log(1 + y) }))
}

// timesFunction returns the kernels of x*f(y), which is 0 if x is 0. The half-precision kernels
// round f(y) first.
func timesFunction(f func(float64) float64, c func(complex128) complex128) kernel.Table {
	short := func(x, y float32, round func(float32) float32) float32 {
		if x == 0 {
			return 0
		}
		return x * round(float32(f(float64(y))))
	}
	half := elementwise.Map2(func(x, y tensor.Float16Elem) tensor.Float16Elem {
		return tensor.Float16Of(short(x.Float32(), y.Float32(), func(v float32) float32 { return tensor.Float16Of(v).Float32() }))
	})
	bfloat := elementwise.Map2(func(x, y tensor.BFloat16Elem) tensor.BFloat16Elem {
		return tensor.BFloat16Of(short(x.Float32(), y.Float32(), func(v float32) float32 { return tensor.BFloat16Of(v).Float32() }))
	})
	return elementwise.Union(
		zeroFirst(func(x, y float64) float64 { return x * f(y) }, func(x, y complex128) complex128 { return x * c(y) }),
		kernel.Table{
			tensor.Float16:  elementwise.Loops[tensor.Float16Elem, tensor.Float16Elem]{Each: half, Cost: costly}.Kernel(),
			tensor.BFloat16: elementwise.Loops[tensor.BFloat16Elem, tensor.BFloat16Elem]{Each: bfloat, Cost: costly}.Kernel(),
		})
}

// zeroFirst returns the kernels of a function that is 0 if its first operand is 0.
func zeroFirst(f func(x, y float64) float64, c func(x, y complex128) complex128) kernel.Table {
	return elementwise.Union(
		elementwise.Floats2(costly, func(x, y float64) float64 {
			if x == 0 {
				return 0
			}
			return f(x, y)
		}),
		elementwise.Complexes2(3*costly, func(x, y complex128) complex128 {
			if x == 0 {
				return 0
			}
			return c(x, y)
		}))
}

func floatPower[T interface {
	simd.Float
	tensor.Elem
}](t kernel.Table, cost float64) {
	row(t, elementwise.Loops[T, T]{Each: simd.Pow[T], Right: samePower[T], Cost: cost})
}

// samePower raises all of x to one power. Small integer powers are computed by multiplication.
func samePower[T simd.Float](z, x []T, y T) {
	switch y {
	case 1:
		copy(z, x)
	case 2:
		simd.Square(z, x)
	default:
		ys := membudget.Make[T](min(len(z), 512))
		for i := range ys {
			ys[i] = y
		}
		for lo := 0; lo < len(z); lo += len(ys) {
			n := min(len(ys), len(z)-lo)
			simd.Pow(z[lo:lo+n], x[lo:lo+n], ys[:n])
		}
	}
}

func intPower[T elementwise.Signed](t kernel.Table) {
	loops := elementwise.Loops[T, T]{Each: elementwise.Map2(power[T]), Check: notNegative[T], Cost: costly}
	t[tensor.DTypeOf[T]()] = loops.Kernel()
}

func notNegative[T elementwise.Signed](y []T) error {
	for _, v := range y {
		if v < 0 {
			return status.InvalidArgumentf("Integers to negative integer powers are not allowed")
		}
	}
	return nil
}

// power raises x to a non-negative power, with wrap-around.
func power[T elementwise.Signed](x, y T) T {
	result := T(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			result *= x
		}
		x *= x
	}
	return result
}
