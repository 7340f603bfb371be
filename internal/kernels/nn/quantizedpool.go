package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/quantize"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: " + quantize.Types, "ksize: list(int)", "strides: list(int)", samePadding}
	in := []string{"input: T", "min_input: float32", "max_input: float32"}
	out := []string{"output: T", "min_output: float32", "max_output: float32"}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedAvgPool", Doc: "Computes average pooling of a quantized tensor.",
			In: in, Out: out, Attrs: attrs, Shape: quantize.Shape(poolShape("AvgPool", 2, false), 1),
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.QUint8: ranged(newAvgPool(2, intAvgPool[tensor.QUint8Elem])), tensor.QInt8: ranged(newAvgPool(2, intAvgPool[tensor.QInt8Elem])),
		}),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "QuantizedMaxPool", Doc: "Computes max pooling of a quantized tensor.",
			In: in, Out: out, Attrs: attrs, Shape: quantize.Shape(poolShape("MaxPool", 2, true), 1),
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.QUint8: ranged(newPool(2, intMaxPool[tensor.QUint8Elem])), tensor.QInt8: ranged(newPool(2, intMaxPool[tensor.QInt8Elem])),
		}),
	})
}

// ranged wraps a kernel such that it also passes on the range of its input.
func ranged(pool kernel.New) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		k, err := pool(c)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			var limits [2]float32
			for i, name := range []string{"min_input", "max_input"} {
				t := ctx.Input(1 + i)
				if t.Rank() != 0 {
					return status.InvalidArgumentf("%s shape must be rank 0 but is rank %d, received shape: %v", name, t.Rank(), t.Shape())
				}
				limits[i] = tensor.Value[float32](t)
			}
			if rank := ctx.Input(0).Rank(); rank != 4 && rank != 5 {
				return status.InvalidArgumentf("Input must be 4 or 5-dimensional")
			}
			if err := k.Compute(ctx); err != nil {
				return err
			}
			quantize.SetRange(ctx, 1, quantize.Range{Min: limits[0], Max: limits[1]})
			return nil
		}), nil
	}
}

// eachWindow calls f with the elements of every window, channel by channel, and the position of the
// output.
func eachWindow[T any](g *grid, x []T, f func(at int, window []T)) {
	rows, cols := g.spans[1], g.spans[2]
	parallel.For(g.batch*rows.out, 1, func(lo, hi int) {
		window := membudget.MakeCap[T](rows.filter * cols.filter)
		for line := lo; line < hi; line++ {
			n, oy := line/rows.out, line%rows.out
			fy0, fy1, y0 := rows.clip(oy)
			for ox := range cols.out {
				fx0, fx1, x0 := cols.clip(ox)
				for c := range g.channels {
					window = window[:0]
					for y := y0; y < y0+fy1-fy0; y++ {
						for col := x0; col < x0+fx1-fx0; col++ {
							window = append(window, x[((n*rows.in+y)*cols.in+col)*g.channels+c])
						}
					}
					f((line*cols.out+ox)*g.channels+c, window)
				}
			}
		}
	})
}

func intAvgPool[T tensor.QUint8Elem | tensor.QInt8Elem](_ *pooling, g *grid, z, x []T) {
	eachWindow(g, x, func(at int, window []T) {
		sum := int32(0)
		for _, v := range window {
			sum += int32(v)
		}
		z[at] = T(math.RoundToEven(float64(sum) / float64(max(1, len(window)))))
	})
}

func intMaxPool[T tensor.QUint8Elem | tensor.QInt8Elem](_ *pooling, g *grid, z, x []T) {
	eachWindow(g, x, func(at int, window []T) {
		if len(window) > 0 {
			z[at] = window[0]
		}
		for _, v := range window {
			z[at] = max(z[at], v)
		}
	})
}
