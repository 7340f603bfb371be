package nn

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/channelwise"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for _, v := range []struct {
		suffix, of, format, name string
		spatial                  int
	}{{"", "images", dataFormat2D, "AvgPool", 2}, {"3D", "volumes", dataFormat3D, "Pool3D", 3}} {
		sizes := []string{"ksize: list(int) >= 4", "strides: list(int) >= 4"}
		if v.spatial == 3 {
			sizes = []string{"ksize: list(int) >= 5", "strides: list(int) >= 5"}
		}
		attrs := append(sizes, samePadding, v.format, "T: "+floatTypes)
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "AvgPool" + v.suffix, Doc: "Computes the average of each window of " + v.of + ", separately for each channel. Padding is not counted.",
				In: []string{avgPoolInput(v.spatial) + ": T"}, Out: []string{"output: T"},
				Attrs: attrs, Shape: poolShape(v.name, v.spatial, false),
			},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  newAvgPool(v.spatial, viaWidePool[tensor.Float16Elem](avgPool[float32])),
				tensor.BFloat16: newAvgPool(v.spatial, viaWidePool[tensor.BFloat16Elem](avgPool[float32])),
				tensor.Float32:  newAvgPool(v.spatial, avgPool[float32]),
				tensor.Float64:  newAvgPool(v.spatial, avgPool[float64]),
			}),
		})
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: "AvgPool" + v.suffix + "Grad", Doc: "Computes the gradient of AvgPool" + v.suffix + " with respect to its input.",
				In: []string{"orig_input_shape: int32", "grad: T"}, Out: []string{"output: T"},
				Attrs: attrs, Shape: sizesShape(v.spatial + 2),
			},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  newAvgPoolGrad(v.spatial, viaWidePool[tensor.Float16Elem](avgPoolGrad[float32])),
				tensor.BFloat16: newAvgPoolGrad(v.spatial, viaWidePool[tensor.BFloat16Elem](avgPoolGrad[float32])),
				tensor.Float32:  newAvgPoolGrad(v.spatial, avgPoolGrad[float32]),
				tensor.Float64:  newAvgPoolGrad(v.spatial, avgPoolGrad[float64]),
			}),
		})
	}
}

func avgPoolInput(spatial int) string {
	if spatial == 2 {
		return "value"
	}
	return "input"
}

// viaWidePool adapts a float32 pooling to a 16-bit type.
func viaWidePool[H elementwise.Short](compute poolFunc[float32]) poolFunc[H] {
	return func(p *pooling, g *grid, z, x []H) {
		wide := membudget.Make[float32](len(z) + len(x))
		elementwise.Widen(wide[len(z):], x)
		compute(p, g, wide[:len(z)], wide[len(z):])
		elementwise.Narrow(z, wide[:len(z)])
	}
}

func newAvgPool[T tensor.Elem](spatial int, compute poolFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		p, err := poolingOf(c.Attrs, spatial, "stride")
		if err == nil && spatial == 3 {
			err = p.noDepth()
		}
		if err != nil {
			return nil, err
		}
		if err := checkSizes(c.Attrs.Ints("ksize"), func(bad int64) string {
			if spatial == 3 {
				return "Sliding window ksize field must have non-negative dimensions"
			}
			return fmt.Sprintf("ksize must be a positive int32 value, got:%d", bad)
		}); err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			if p.depth != 1 {
				return status.Unimplementedf("Non-spatial pooling is not yet supported. Volunteers? :)")
			}
			return runPool(ctx, &p, "avg", compute)
		}), nil
	}
}

func avgPool[T simd.Float](_ *pooling, g *grid, z, x []T) { channelwise.AvgPool(g.pooling(), z, x) }

func newAvgPoolGrad[T tensor.Elem](spatial int, compute poolFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		strideField := "strides"
		if spatial == 3 {
			strideField = "stride"
		}
		p, err := poolingOf(c.Attrs, spatial, strideField)
		if err != nil {
			return nil, err
		}
		if spatial == 3 {
			if err := checkSizes(c.Attrs.Ints("ksize"), func(bad int64) string {
				return fmt.Sprintf("ksize must be positive, got: %d", bad)
			}); err != nil {
				return nil, err
			}
			if err := p.noDepth(); err != nil {
				return nil, err
			}
		}
		return kernel.Func(func(ctx *kernel.Context) error { return runAvgPoolGrad(ctx, &p, compute) }), nil
	}
}

func runAvgPoolGrad[T tensor.Elem](ctx *kernel.Context, p *pooling, compute poolFunc[T]) error {
	sizes, grad := ctx.Input(0), ctx.Input(1)
	rank := p.rank()
	if sizes.Rank() != 1 || sizes.NumElements() != rank {
		name := "out_backprop"
		if p.spatial == 3 {
			name = "tensor_in"
		}
		return status.InvalidArgumentf("%s must be 1-dimensional and %d elements", name, rank)
	}
	if grad.Rank() != rank {
		return status.InvalidArgumentf("out_backprop must be %d-dimensional", rank)
	}
	dims := intarg.Values(sizes)
	for _, d := range dims {
		if d < 0 {
			return status.InvalidArgumentf("Expected a non-negative size, got %d", d)
		}
	}
	shape, err := intarg.Shape(dims)
	if err != nil {
		return err
	}
	if p.depth != 1 {
		return status.Unimplementedf("Non-spatial pooling is not yet supported. Volunteers? :)")
	}
	if p.spatial == 3 && (shape[0] != grad.Shape()[0] || shape[p.channel()] != grad.Shape()[p.channel()]) {
		return status.InvalidArgumentf("Expected batch and channels of tensor_in_shape and out_backprop to match, got %v and %v", shape, grad.Shape())
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	g, err := p.size(shape)
	if err != nil {
		return err
	}
	if want := p.shapeOf(&g); !grad.Shape().Equal(want) {
		return status.InvalidArgumentf("Expected grad shape to be %v, but got %v", want, grad.Shape())
	}
	if d := device.Of(out); d != nil {
		return p.poolOnDevice(d, poolName("avg", out, "_grad"), &g, out, grad)
	}
	g.step = ctx.Context()
	if err := mapLast(p.axes, out, grad, func(x, y []T) { compute(p, &g, x, y) }); err != nil {
		return err
	}
	return g.step.Err()
}

func avgPoolGrad[T simd.Float](_ *pooling, g *grid, dx, dy []T) {
	channelwise.AvgPoolGrad(g.pooling(), dx, dy)
}
