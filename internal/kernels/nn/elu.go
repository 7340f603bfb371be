package nn

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
)

// Constants of Selu (Klambauer et al., "Self-Normalizing Neural Networks", 2017), chosen such that
// the mean and the variance of activations tend to 0 and 1.
const (
	seluScale      = 1.0507009873554804934193349852946
	seluScaleAlpha = 1.7580993408473768599402175208123
)

func init() {
	registerActivation("Elu", "Computes the exponential linear function: features if features >= 0, exp(features) - 1 otherwise.", floatTypes, "outputs", nil,
		elementwise.FloatLoops(1, elu[float32](1, 1), elu[float64](1, 1)),
		elementwise.FloatLoops2(1, eluGrad[float32], eluGrad[float64]))
	registerActivation("Selu", "Computes the scaled exponential linear function: scale * features if features >= 0, scale * alpha * (exp(features) - 1) otherwise.",
		floatTypes, "outputs", nil,
		elementwise.FloatLoops(1, elu[float32](seluScale, seluScaleAlpha), elu[float64](seluScale, seluScaleAlpha)),
		elementwise.FloatLoops2(1, seluGrad[float32], seluGrad[float64]))
}

// elu returns a loop that computes positive*x where x is not negative, and negative*(exp(x)-1)
// elsewhere.
func elu[T simd.Float](positive, negative T) func(z, x []T) {
	return viaScratch(
		func(tmp, x []T) {
			simd.Exp(tmp, x)
			simd.AddScalar(tmp, tmp, -1)
			if negative != 1 {
				simd.MulScalar(tmp, tmp, negative)
			}
		},
		func(z, tmp, x []T) {
			simd.SelectLess(z, x, 0, tmp, x)
			if positive != 1 { // scale the elements that are not negative
				simd.MulScalar(tmp, z, positive)
				simd.SelectLess(z, z, 0, z, tmp)
			}
		})
}

func eluGrad[T simd.Float](z, g, y []T) {
	viaScratch2(
		func(tmp, g, y []T) {
			simd.AddScalar(tmp, y, 1)
			simd.Mul(tmp, tmp, g)
		},
		func(z, tmp, g, y []T) { simd.SelectLess(z, y, 0, tmp, g) })(z, g, y)
}

func seluGrad[T simd.Float](z, g, y []T) {
	for i, v := range y[:len(z)] {
		if v < 0 {
			z[i] = g[i] * (v + seluScaleAlpha)
		} else {
			z[i] = g[i] * seluScale
		}
	}
}
