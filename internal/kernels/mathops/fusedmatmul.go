package mathops

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "_FusedMatMul", Doc: "Computes MatMul followed by a bias addition and an activation. Graph optimizers create it.",
			In:  []string{"a: T", "b: T", "args: num_args * T"},
			Out: []string{"product: T"},
			Attrs: []string{
				"transpose_a: bool = false",
				"transpose_b: bool = false",
				"T: {bfloat16, float16, float32}",
				"num_args: int >= 0",
				"fused_ops: list(string) = []",
				"epsilon: float = 9.999999747378752e-05",
				"leakyrelu_alpha: float = 0.20000000298023224",
			},
			Shape: matMulShape,
		},
		Kernels: byT(kernel.Table{
			tensor.Float32:  newFusedMatMul(product[float32], simd.Add[float32], func(f func(z, x []float32)) func(z, x []float32) { return f }),
			tensor.Float16:  newFusedMatMul(halfProduct[tensor.Float16Elem], elementwise.Via32Binary[tensor.Float16Elem](simd.Add[float32]), elementwise.Via32[tensor.Float16Elem]),
			tensor.BFloat16: newFusedMatMul(bfloatProduct, elementwise.Via32Binary[tensor.BFloat16Elem](simd.Add[float32]), elementwise.Via32[tensor.BFloat16Elem]),
		}),
	})
}

// activation returns the loop of an activation function by its name in the attribute fused_ops. The
// empty name is the identity.
func activation(name string, alpha float32) (loop func(z, x []float32), known bool) {
	switch name {
	case "":
		return nil, true
	case "Relu":
		return simd.Relu[float32], true
	case "Relu6":
		return elementwise.Map(func(x float32) float32 { return min(max(x, 0), 6) }), true
	case "Elu":
		return elementwise.Map32(func(x float64) float64 {
			if x < 0 {
				return math.Expm1(x)
			}
			return x
		}), true
	case "LeakyRelu":
		return elementwise.Map(func(x float32) float32 { return max(x, x*alpha) }), true
	case "Tanh":
		return simd.Tanh[float32], true
	case "Sigmoid":
		return simd.Sigmoid[float32], true
	case "GeluExact":
		return elementwise.Map32(func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }), true
	case "GeluApproximate":
		return elementwise.Map32(func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}), true
	}
	return nil, false
}

// newFusedMatMul returns the kernel for elements of type T. add adds a row, and lift converts a
// loop over float32 to a loop over T.
func newFusedMatMul[T tensor.Elem](mul multiply[T], add func(z, x, y []T), lift func(func(z, x []float32)) func(z, x []T)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		fused := c.Attrs.Strings("fused_ops")
		if len(fused) == 0 || len(fused) > 2 || fused[0] != "BiasAdd" {
			return nil, status.InvalidArgumentf("Fused computation pattern is not supported: %v", fused)
		}
		name := ""
		if len(fused) == 2 {
			name = fused[1]
		}
		loop, known := activation(name, c.Attrs.Float("leakyrelu_alpha"))
		if !known {
			return nil, status.InvalidArgumentf("Fused computation pattern is not supported: %v", fused)
		}
		var activate func(z, x []T)
		if loop != nil {
			activate = lift(loop)
		}
		ta, tb := c.Attrs.Bool("transpose_a"), c.Attrs.Bool("transpose_b")
		return kernel.Func(func(ctx *kernel.Context) error {
			bias := ctx.Input(2)
			out, err := matMul(ctx, ta, tb, mul)
			if err != nil {
				return err
			}
			cols := out.Dim(1)
			if bias.Rank() != 1 || bias.Dim(0) != cols {
				return status.InvalidArgumentf("bias must be a vector of %d elements, has shape %v", cols, bias.Shape())
			}
			z, b := tensor.Values[T](out), tensor.Values[T](bias)
			for lo := 0; lo < len(z); lo += cols {
				row := z[lo : lo+cols]
				add(row, row, b)
				if activate != nil {
					activate(row, row)
				}
			}
			return nil
		}), nil
	}
}
