package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "L2Loss", Doc: "Computes half the squared L2 norm of a tensor: sum(t ** 2) / 2.",
			In: []string{"t: T"}, Out: []string{"output: T"},
			Attrs: []string{"T: {float16, bfloat16, float32, float64}"}, Shape: opdef.ScalarShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  l2Loss(squares32[tensor.Float16Elem], func(v float64) tensor.Float16Elem { return tensor.Float16Of(float32(v)) }),
			tensor.BFloat16: l2Loss(squares32[tensor.BFloat16Elem], func(v float64) tensor.BFloat16Elem { return tensor.BFloat16Of(float32(v)) }),
			tensor.Float32:  l2Loss(squares[float32], func(v float64) float32 { return float32(v) }),
			tensor.Float64:  l2Loss(squares[float64], func(v float64) float64 { return v }),
		}),
	})
}

// sumGrain is the number of elements that one core sums.
const sumGrain = 1 << 16

func l2Loss[T tensor.Elem](squares func([]T) float64, round func(float64) T) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		x := tensor.Values[T](ctx.Input(0))
		out, err := ctx.Allocate(0, tensor.Shape{})
		if err != nil {
			return err
		}
		parts := membudget.Make[float64](parallel.Blocks(len(x), sumGrain))
		parallel.For(len(x), sumGrain, func(lo, hi int) { parts[lo/sumGrain] = squares(x[lo:hi]) })
		tensor.Values[T](out)[0] = round(simd.Sum64(parts) / 2)
		return nil
	})
}

func squares[T simd.Float](x []T) float64 { return float64(simd.Dot(x, x)) }

func squares32[H elementwise.Short](x []H) float64 {
	tmp := membudget.Make[float32](min(len(x), scratchLen))
	sum := 0.0
	for len(x) > 0 {
		n := min(len(x), scratchLen)
		elementwise.Widen(tmp[:n], x[:n])
		sum += float64(simd.Dot(tmp[:n], tmp[:n]))
		x = x[n:]
	}
	return sum
}
