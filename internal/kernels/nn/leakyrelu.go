package nn

import (
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	table := func(build func(alpha float32) kernel.Table) kernel.Table {
		out := kernel.Table{}
		for _, dtype := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
			out[dtype] = func(c *kernel.Construction) (kernel.Kernel, error) { return build(c.Attrs.Float("alpha"))[dtype](c) }
		}
		return out
	}
	registerActivation("LeakyRelu", "Computes the leaky rectified linear function: features if features > 0, alpha * features otherwise.",
		floatTypes+" = float32", "features", []string{"alpha: float = 0.20000000298023224"},
		table(func(alpha float32) kernel.Table {
			return elementwise.FloatLoops(1, leaky(alpha), leaky(float64(alpha)))
		}),
		table(func(alpha float32) kernel.Table {
			return elementwise.FloatLoops2(1, leakyGrad(alpha), leakyGrad(float64(alpha)))
		}))
}

func leaky[T simd.Float](alpha T) func(z, x []T) {
	return func(z, x []T) { simd.Leaky(z, x, x, alpha) }
}

func leakyGrad[T simd.Float](alpha T) func(z, g, x []T) {
	return func(z, g, x []T) { simd.Leaky(z, g, x, alpha) }
}
