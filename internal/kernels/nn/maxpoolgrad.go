package nn

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const gradDoc = "Computes the gradient of max pooling with respect to its input. Each gradient goes to the first largest value of its window."
	const nearGradDoc = "Computes the gradient of max pooling with respect to its input. Each gradient goes to all values of its window that differ from the output by less than 0.00001."
	const gradGradDoc = "Computes the second-order gradient of max pooling: the gradient at the first largest value of each window."
	windows := []string{"ksize: list(int) >= 4", "strides: list(int) >= 4"}
	windows3D := []string{"ksize: list(int) >= 5", "strides: list(int) >= 5"}
	three := []string{"orig_input: T", "orig_output: T", "grad: T"}
	five := append(three[:3:3], "ksize: int32", "strides: int32")
	with := func(list []string, more ...string) []string { return append(slices.Clip(list), more...) }
	inputShape4, inputShape5 := sameAsInput(0, 4), sameAsInput(0, 5)
	for _, op := range []struct {
		name, doc string
		in, attrs []string
		shape     opdef.ShapeFn
		kernels   []kernel.Impl
	}{
		{"MaxPoolGrad", gradDoc, three, with(windows, anyPadding, explicitAttr, dataFormat2D, "T: "+realTypes+" = float32"), inputShape4,
			kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.grad }))},
		{"MaxPoolGradV2", gradDoc, five, []string{samePadding, dataFormat2D, "T: " + realTypes + " = float32"}, inputShape4,
			kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.gradV2 }))},
		{"MaxPoolGradGrad", gradGradDoc, three, with(windows, samePadding, dataFormat2D, "T: "+realTypes),
			gradGradShape(poolShape("MaxPool", 2, true), [2]int{2, 1}),
			kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.gradGrad }))},
		{"MaxPoolGradGradV2", gradGradDoc, five, []string{samePadding, dataFormat2D, "T: " + realTypes},
			gradGradShape(poolShapeV2, [2]int{2, 1}),
			kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.gradGradV2 }))},
		{"MaxPool3DGrad", nearGradDoc, []string{"orig_input: TInput", "orig_output: TInput", "grad: T"},
			with(windows3D, samePadding, dataFormat3D, "T: {float16, bfloat16, float32} = float32", "TInput: {float16, bfloat16, float32} = float32"),
			inputShape5, maxPool3DGradKernels()},
		{"MaxPool3DGradGrad", gradGradDoc, three, with(windows3D, samePadding, dataFormat3D, "T: "+realTypes),
			gradGradShape(poolShape("Pool3D", 3, false), [2]int{2, 1}),
			kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.gradGrad3D }))},
	} {
		kernel.Register(kernel.Op{
			Def:     opdef.Def{Name: op.name, Doc: op.doc, In: op.in, Out: []string{"output: T"}, Attrs: op.attrs, Shape: op.shape},
			Kernels: op.kernels,
		})
	}
}

// maxPool3DGradKernels returns the kernels of MaxPool3DGrad, where TInput and T are the same type.
func maxPool3DGradKernels() []kernel.Impl {
	var out []kernel.Impl
	for _, t := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32} {
		k := ordered[t]
		out = append(out, kernel.Impl{Types: []kernel.Constraint{kernel.OfType("T", t), kernel.OfType("TInput", t)}, New: k.grad3D})
	}
	return out
}

// flatDepth rejects windows that extend along the channels.
func (p *pooling) flatDepth(op string) error {
	if p.depth != 1 || p.depthStride != 1 {
		return status.Unimplementedf("%s is not yet supported on the depth dimension.", op)
	}
	return nil
}

// noDepth is like flatDepth, for the pooling of volumes.
func (p *pooling) noDepth() error {
	if p.depth != 1 || p.depthStride != 1 {
		return status.Unimplementedf("Pooling is not yet supported on the depth dimension.")
	}
	return nil
}

func newMaxGrad[T tensor.Elem](compute poolGradFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		p, err := poolingOf(c.Attrs, 2, "strides")
		if err == nil {
			err = p.flatDepth("MaxPoolingGrad")
		}
		if err == nil && p.padding == paddingExplicit { // the other forms ignore explicit paddings
			err = p.checkPadding()
		}
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error { return runMaxGrad(ctx, &p, compute) }), nil
	}
}

func newMaxGrad3D[T tensor.Elem](compute poolGradFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		p, err := poolingOf(c.Attrs, 3, "stride")
		if err != nil {
			return nil, err
		}
		if err := p.noDepth(); err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error { return runMaxGrad(ctx, &p, compute) }), nil
	}
}

// windowInputs reads the size and the strides of windows from inputs 3 and 4.
func windowInputs(ctx *kernel.Context, a axes, padding string) (pooling, error) {
	p, err := newPooling(a, intarg.Values(ctx.Input(3)), intarg.Values(ctx.Input(4)), padding, nil, "strides")
	if err == nil {
		err = p.flatDepth("MaxPoolingGrad")
	}
	return p, err
}

func newMaxGradV2[T tensor.Elem](compute poolGradFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a, padding := axesOf(c.Attrs, 2), c.Attrs.String("padding")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkRanks(ctx, 4, "tensor_in", "tensor_out", "out_backprop"); err != nil {
				return err
			}
			p, err := windowInputs(ctx, a, padding)
			if err != nil {
				return err
			}
			return runMaxGrad(ctx, &p, compute)
		}), nil
	}
}

func newMaxGradGrad[T tensor.Elem](spatial int, compute poolGradFunc[T]) kernel.New {
	op := "MaxPoolingGradGrad"
	if spatial == 3 {
		op = "MaxPooling3dGradGrad"
	}
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		p, err := poolingOf(c.Attrs, spatial, "strides")
		if err == nil {
			err = p.flatDepth(op)
		}
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error { return runMaxGradGrad(ctx, &p, compute) }), nil
	}
}

func newMaxGradGradV2[T tensor.Elem](compute poolGradFunc[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a, padding := axesOf(c.Attrs, 2), c.Attrs.String("padding")
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := checkRanks(ctx, 4, "tensor_in", "tensor_out", "out_grad_backprop"); err != nil {
				return err
			}
			p, err := windowInputs(ctx, a, padding)
			if err != nil {
				return err
			}
			return runMaxGradGrad(ctx, &p, compute)
		}), nil
	}
}

// checkRanks checks the rank of the first inputs. names are their names in errors.
func checkRanks(ctx *kernel.Context, rank int, names ...string) error {
	for i, name := range names {
		if ctx.Input(i).Rank() != rank {
			return status.InvalidArgumentf("%s must be %d-dimensional", name, rank)
		}
	}
	return nil
}

// poolGradFunc computes z from the input x and the output y of a pooling and from a gradient, all
// with channels last.
type poolGradFunc[T tensor.Elem] func(g *grid, z, x, y, grad []T)

func runMaxGrad[T tensor.Elem](ctx *kernel.Context, p *pooling, compute poolGradFunc[T]) error {
	if err := checkRanks(ctx, p.rank(), "tensor_in", "tensor_out", "out_backprop"); err != nil {
		return err
	}
	return runPoolGrad(ctx, p, ctx.Input(0).Shape(), true, compute)
}

func runMaxGradGrad[T tensor.Elem](ctx *kernel.Context, p *pooling, compute poolGradFunc[T]) error {
	if err := checkRanks(ctx, p.rank(), "tensor_in", "tensor_out", "out_grad_backprop"); err != nil {
		return err
	}
	return runPoolGrad(ctx, p, ctx.Input(1).Shape(), false, compute)
}

// runPoolGrad checks the shapes of input, output and gradient and computes an output of the given
// shape. If ofOutput is set, the gradient has the shape of the output, and otherwise that of the
// input.
func runPoolGrad[T tensor.Elem](ctx *kernel.Context, p *pooling, shape tensor.Shape, ofOutput bool, compute poolGradFunc[T]) error {
	in, pooled, grad := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	g, err := p.size(in.Shape())
	if err != nil {
		return err
	}
	want := p.shapeOf(&g)
	if !pooled.Shape().Equal(want) {
		return status.InvalidArgumentf("Expected orig_output shape to be %v, but got %v", want, pooled.Shape())
	}
	if !ofOutput {
		want = in.Shape()
	}
	if !grad.Shape().Equal(want) {
		return status.InvalidArgumentf("Expected grad shape to be %v, but got %v", want, grad.Shape())
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		if ofOutput {
			return p.maxGradOnDevice(d, &g, out, in, grad)
		}
		return p.poolOnDevice(d, poolName("max", out, "_pick"), &g, out, in, pooled, grad)
	}
	var vals [3][]T
	for i, t := range []*tensor.Tensor{in, pooled, grad} {
		last, err := p.channelsLast(t)
		if err != nil {
			return err
		}
		defer last.Release()
		vals[i] = tensor.Values[T](&last)
	}
	g.step = ctx.Context()
	return p.write(out, func(z *tensor.Tensor) error {
		compute(&g, tensor.Values[T](z), vals[0], vals[1], vals[2])
		return g.step.Err()
	})
}

// first calls found for each channel of a window with the number of the pixel that holds the first
// largest value. best and at are scratch memory of one element per channel.
func (o *order[T]) first(g *grid, x []T, image int, r *region, best []T, at []int, found func(channel, pixel int)) {
	n, begun := g.channels, false
	g.pixels(image, r, func(in int) {
		row := x[in*n : (in+1)*n]
		if !begun {
			begun = true
			copy(best, row)
			for c := range at {
				at[c] = in
			}
			return
		}
		for c, v := range row {
			if o.less(best[c], v) {
				best[c], at[c] = v, in
			}
		}
	})
	if begun {
		for c, in := range at {
			found(c, in)
		}
	}
}

// gradient adds each gradient to the pixel that its output was taken from.
func (o order[T]) gradient(g *grid, z, x, _, grad []T) {
	if o.grad != nil && o.grad(g.pooling(), z, x, grad) {
		return
	}
	n, lines := g.channels, g.spans[0].out*g.spans[1].out
	size := g.inPixels() * n
	parallel.For(g.batch, max(1, g.perBlock()/max(lines, 1)), func(lo, hi int) {
		clear(z[lo*size : hi*size])
		best, at := membudget.Make[T](n), membudget.Make[int](n)
		g.windows(lo*lines, hi*lines, func(out, image int, r *region) {
			o.first(g, x, image, r, best, at, func(c, in int) {
				z[in*n+c] = o.add(z[in*n+c], grad[out*n+c])
			})
		})
	})
}

// nearGradient adds each gradient to all pixels of the window that are near the output.
func (o order[T]) nearGradient(g *grid, z, x, y, grad []T) {
	if o.nearGrad != nil {
		o.nearGrad(g.pooling(), z, x, y, grad)
		return
	}
	n := g.channels
	clear(z)
	g.byImage(func(out, image int, r *region) {
		g.pixels(image, r, func(in int) {
			for c := range n {
				if o.near(x[in*n+c], y[out*n+c]) {
					z[in*n+c] = o.add(z[in*n+c], grad[out*n+c])
				}
			}
		})
	})
}

// gradGrad sets each output to the gradient at the first pixel of its window that equals it.
func (o order[T]) gradGrad(g *grid, z, x, y, grad []T) {
	n := g.channels
	g.byLine(func(out, image int, r *region) {
		row := z[out*n : (out+1)*n]
		clear(row)
		found := membudget.Make[bool](n)
		g.pixels(image, r, func(in int) {
			for c := range row {
				if !found[c] && o.same(x[in*n+c], y[out*n+c]) {
					row[c], found[c] = grad[in*n+c], true
				}
			}
		})
	})
}
