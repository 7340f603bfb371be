package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerActivation("Softplus", "Computes log(exp(features) + 1).", floatTypes, "features", nil,
		kernel.Table{
			tensor.Float16:  elementwise.Unary(10, elementwise.Via32[tensor.Float16Elem](softplus[float32](0x1p-13))),
			tensor.BFloat16: elementwise.Unary(10, elementwise.Via32[tensor.BFloat16Elem](softplus[float32](0x1p-7))),
			tensor.Float32:  elementwise.Unary(2, softplus[float32](0x1p-23)),
			tensor.Float64:  elementwise.Unary(5, softplus[float64](0x1p-52)),
		},
		elementwise.FloatLoops2(2, softplusGrad[float32], softplusGrad[float64]))
	registerActivation("Softsign", "Computes features / (abs(features) + 1).", floatTypes, "features", nil,
		elementwise.FloatLoops(1, softsign[float32], softsign[float64]),
		elementwise.FloatLoops2(1, softsignGrad[float32], softsignGrad[float64]))
}

// softplus returns the loop for a type of the given precision. The result for large features, where
// adding 1 has no effect, is the feature itself. For small ones, where the logarithm is linear, it
// is exp(x).
func softplus[T simd.Float](epsilon float64) func(z, x []T) {
	threshold := T(math.Log(epsilon) + 2)
	return func(z, x []T) {
		n := min(len(z), scratchLen)
		scratch := membudget.Make[T](2 * n)
		for lo := 0; lo < len(z); lo += scratchLen {
			n = min(n, len(z)-lo)
			x, exp, log := x[lo:lo+n], scratch[:n], scratch[n:2*n]
			simd.Exp(exp, x)
			simd.Log1p(log, exp)
			simd.SelectGreater(log, x, -threshold, x, log)
			simd.SelectLess(z[lo:lo+n], x, threshold, exp, log)
		}
	}
}

// softplusGrad sets z to g * sigmoid(x).
func softplusGrad[T simd.Float](z, g, x []T) {
	tmp := membudget.Make[T](min(len(z), scratchLen))
	for lo := 0; lo < len(z); lo += scratchLen {
		n := min(scratchLen, len(z)-lo)
		simd.Neg(tmp[:n], x[lo:lo+n])
		simd.Exp(tmp[:n], tmp[:n])
		simd.AddScalar(tmp[:n], tmp[:n], 1)
		simd.Div(z[lo:lo+n], g[lo:lo+n], tmp[:n])
	}
}

func softsign[T simd.Float](z, x []T) {
	for i, v := range x[:len(z)] {
		z[i] = v / (T(math.Abs(float64(v))) + 1)
	}
}

func softsignGrad[T simd.Float](z, g, x []T) {
	for i, v := range x[:len(z)] {
		d := T(math.Abs(float64(v))) + 1
		z[i] = g[i] / (d * d)
	}
}
