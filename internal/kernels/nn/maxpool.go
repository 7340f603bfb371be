package nn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	maxPoolTypes   = "T: {float16, bfloat16, float32, float64, int32, int64, uint8, int16, int8, uint16, qint8} = float32"
	maxPoolFormats = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
	samePadding    = "padding: {'SAME', 'VALID'}"
	anyPadding     = "padding: {'SAME', 'VALID', 'EXPLICIT'}"
	explicitAttr   = "explicit_paddings: list(int) = []"
	dataFormat3D   = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPool", Doc: "Computes the maximum of each window, separately for each channel.",
			In: []string{"input: T"}, Out: []string{"output: T"},
			Attrs: []string{maxPoolTypes, "ksize: list(int) >= 4", "strides: list(int) >= 4", anyPadding, explicitAttr, maxPoolFormats},
			Shape: poolShape("MaxPool", 2, true),
		},
		Kernels: append(kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.pool })), byFours(newPoolByFours)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPoolV2", Doc: "Computes max pooling with the window size and the strides as inputs.",
			In: []string{"input: T", "ksize: int32", "strides: int32"}, Out: []string{"output: T"},
			Attrs: []string{maxPoolTypes, samePadding, maxPoolFormats}, Shape: poolShapeV2,
		},
		Kernels: append(kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.poolV2 })), byFours(newPoolByFoursV2)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPool3D", Doc: "Computes the maximum of each 3-D window, separately for each channel.",
			In: []string{"input: T"}, Out: []string{"output: T"},
			Attrs: []string{"ksize: list(int) >= 5", "strides: list(int) >= 5", samePadding, dataFormat3D, "T: {float16, bfloat16, float32}"},
			Shape: poolShape("Pool3D", 3, false),
		},
		Kernels: kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.pool3D },
			tensor.Float16, tensor.BFloat16, tensor.Float32)),
	})
}

// poolFunc computes a pooling of an input with channels last.
type poolFunc[T tensor.Elem] func(p *pooling, g *grid, z, x []T)

// newPool returns a kernel that takes the window from attributes.
func newPool[T tensor.Elem](spatial int, compute poolFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		ksize := c.Attrs.Ints("ksize")
		// TensorFlow checks window sizes first, except for volumes
		if spatial == 2 && len(ksize) == 4 {
			if err := checkWindow(ksize); err != nil {
				return nil, err
			}
		}
		p, err := poolingOf(c.Attrs, spatial, "stride")
		if err != nil {
			return nil, err
		}
		if spatial == 3 {
			if err := p.noDepth(); err != nil {
				return nil, err
			}
			if err := checkSizes(ksize, func(int64) string { return "Sliding window ksize field must have non-negative dimensions" }); err != nil {
				return nil, err
			}
		}
		return kernel.Func(func(ctx *kernel.Context) error { return runPool(ctx, &p, "max", compute) }), nil
	}
}

// newPoolV2 returns a kernel that takes the window from inputs.
func newPoolV2[T tensor.Elem](compute poolFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a, padding := axesOf(c.Attrs, 2), c.Attrs.String("padding")
		// with a trailing dimension of four channels
		byFours := c.Attrs.String("data_format") == "NCHW_VECT_C"
		return kernel.Func(func(ctx *kernel.Context) error {
			ksize := intarg.Values(ctx.Input(1))
			if err := checkSizes(ksize, func(int64) string { return "Sliding window ksize must be positive." }); err != nil {
				return err
			}
			p, err := newPooling(a, ksize, intarg.Values(ctx.Input(2)), padding, nil, "stride")
			if err != nil {
				return err
			}
			if rank := ctx.Input(0).Rank(); byFours && rank == a.rank() {
				return status.InvalidArgumentf("tensor_in_shape must have 2 spatial dimensions. %d %d", rank, a.spatial)
			}
			return runPool(ctx, &p, "max", compute)
		}), nil
	}
}

// runPool pools input 0. kind is "max" or "avg".
func runPool[T tensor.Elem](ctx *kernel.Context, p *pooling, kind string, compute poolFunc[T]) error {
	in := ctx.Input(0)
	if p.depth > 1 {
		if in.OnDevice() {
			return kernel.ErrDetour
		}
		return depthPool(ctx, p, compute)
	}
	g, err := p.size(in.Shape())
	if err != nil {
		return err
	}
	if p.spatial == 3 && p.padding == paddingSame {
		g.center()
	}
	out, err := ctx.Allocate(0, p.shapeOf(&g))
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		return p.poolOnDevice(d, poolName(kind, out, ""), &g, out, in)
	}
	g.step = ctx.Context()
	if err := mapLast(p.axes, out, in, func(y, x []T) { compute(p, &g, y, x) }); err != nil {
		return err
	}
	return g.step.Err()
}

// depthPool pools along the channels in adjacent windows. Each window is treated as a row of a
// single channel.
func depthPool[T tensor.Elem](ctx *kernel.Context, p *pooling, compute poolFunc[T]) error {
	in := ctx.Input(0)
	if _, err := p.size(in.Shape()); err != nil {
		return err
	}
	if p.first {
		return status.Unimplementedf("Depthwise max pooling needs the channels last.")
	}
	if p.padding == paddingExplicit {
		return status.Unimplementedf("Depthwise max pooling does not support explicit padding.")
	}
	shape := p.shape(in.Shape()[0], p.pick(in.Shape()), in.Shape()[p.channel()]/p.depth)
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	rows := grid{batch: out.NumElements(), channels: 1, spans: [3]span{one, one, one}}
	rows.spans[2] = span{in: int(p.depth), filter: int(p.depth), out: 1, stride: 1, dilation: 1}
	compute(p, &rows, tensor.Values[T](out), tensor.Values[T](in))
	return nil
}

func (o order[T]) maxPool(_ *pooling, g *grid, z, x []T) {
	if o.pool != nil {
		o.pool(g.pooling(), z, x)
		return
	}
	n := g.channels
	g.byLine(func(out, image int, r *region) {
		row := z[out*n : (out+1)*n]
		for i := range row {
			row[i] = o.lowest
		}
		g.pixels(image, r, func(in int) { o.max(row, x[in*n:(in+1)*n]) })
	})
}
