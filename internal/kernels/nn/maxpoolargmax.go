package nn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"ksize: list(int) >= 4", "strides: list(int) >= 4", samePadding, "include_batch_in_index: bool = false",
		"Targmax: {int32, int64}", "T: " + realTypes}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPoolWithArgmax",
			Doc:  "Computes the maximum of each window and its index: ((b * height + y) * width + x) * channels + c if include_batch_in_index is true, (y * width + x) * channels + c otherwise.",
			In:   []string{"input: T"}, Out: []string{"output: T", "argmax: Targmax"},
			Attrs: []string{attrs[0], attrs[1], attrs[4] + " = int64", attrs[2], attrs[3], attrs[5]},
			Shape: func(c *opdef.ShapeContext) error {
				if err := checkArgmaxSizes(c.Attrs); err != nil {
					return err
				}
				return poolShape("MaxPool", 2, true)(c)
			},
		},
		Kernels: kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.argmax })),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPoolGradWithArgmax", Doc: "Computes the gradient of MaxPoolWithArgmax with respect to its input, from the indices that it returned.",
			In: []string{"input: T", "grad: T", "argmax: Targmax"}, Out: []string{"output: T"},
			Attrs: attrs, Shape: sameAsInput(0, 4),
		},
		Kernels: kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.argmaxGrad })),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MaxPoolGradGradWithArgmax", Doc: "Computes the second-order gradient of MaxPoolWithArgmax: gathers the gradient at the indices that it returned.",
			In: []string{"input: T", "grad: T", "argmax: Targmax"}, Out: []string{"output: T"},
			Attrs: attrs, Shape: gradGradShape(poolShape("MaxPool", 2, true), [2]int{1, 2}),
		},
		Kernels: kernel.ByType("T", ordered.table(func(k *orderedKernels) kernel.New { return k.argmaxGradGrad })),
	})
}

func checkArgmaxSizes(attrs opdef.Attrs) error {
	for _, k := range attrs.Ints("ksize") {
		if k <= 0 {
			return status.InvalidArgumentf("ksize must be a positive int32 value, got:%d", k)
		}
	}
	return nil
}

// argmaxPooling is a max pooling that takes or returns positions.
type argmaxPooling struct {
	pooling
	withBatch bool
}

func newArgmaxPooling(attrs opdef.Attrs) (argmaxPooling, error) {
	p, err := poolingOf(attrs, 2, "stride")
	if err == nil {
		err = checkArgmaxSizes(attrs)
	}
	return argmaxPooling{p, attrs.Bool("include_batch_in_index")}, err
}

func (o order[T]) newArgmax(c *kernel.Construction) (kernel.Kernel, error) {
	p, err := newArgmaxPooling(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.Rank() != 4 {
			return status.InvalidArgumentf("tensor_in must be 4-dimensional (2)")
		}
		if in.NumElements() == 0 {
			return status.InvalidArgumentf("tensor_in must not be empty (2)")
		}
		g, err := p.size(in.Shape())
		if err != nil {
			return err
		}
		out, err := ctx.Allocate(0, p.shapeOf(&g))
		if err != nil {
			return err
		}
		argmax, err := ctx.Allocate(1, out.Shape())
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if d := device.Of(out); d != nil {
			return p.onDevice(d, &g, out, argmax, in)
		}
		at := membudget.Make[int64](out.NumElements())
		g.step = ctx.Context()
		o.argmax(&g, tensor.Values[T](out), at, tensor.Values[T](in), p.withBatch)
		intarg.Set(argmax, at)
		return g.step.Err()
	}), nil
}

func (o order[T]) argmax(g *grid, z []T, at []int64, x []T, withBatch bool) {
	n := g.channels
	parallel.For(g.lines(), g.perBlock(), func(lo, hi int) {
		best, pixels := membudget.Make[T](n), membudget.Make[int](n)
		g.windows(lo, hi, func(out, image int, r *region) {
			o.first(g, x, image, r, best, pixels, func(c, in int) {
				z[out*n+c] = x[in*n+c]
				if !withBatch {
					in -= image * g.inPixels()
				}
				at[out*n+c] = int64(in*n + c)
			})
		})
	})
}

// visit checks the inputs of a gradient whose positions are input 2. It calls visit with each
// output of the pooling and the position in the pooled input that the output was taken from.
func (p *argmaxPooling) visit(ctx *kernel.Context, g *grid, visit func(out, in int)) error {
	at := intarg.Values(ctx.Input(2))
	size := g.inPixels() * g.channels
	perImage := max(1, g.outPixels()*g.channels)
	for i, in := range at {
		if !p.withBatch {
			in += int64(i / perImage * size)
		}
		if in < 0 || in >= int64(g.batch*size) {
			return status.InvalidArgumentf("argmax[%d] = %d is not a position in an input of %d elements", i, at[i], g.batch*size)
		}
		visit(i, int(in))
	}
	return nil
}

func (o order[T]) newArgmaxGrad(c *kernel.Construction) (kernel.Kernel, error) {
	if ksize := c.Attrs.Ints("ksize"); len(ksize) == 4 {
		if err := checkWindow(ksize); err != nil {
			return nil, err
		}
	}
	p, err := newArgmaxPooling(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		g, err := p.size(ctx.Input(0).Shape())
		if err != nil {
			return err
		}
		want := p.shapeOf(&g)
		for i, name := range []string{"grad", "argmax"} {
			if got := ctx.Input(i + 1).Shape(); !got.Equal(want) {
				return status.InvalidArgumentf("Expected %s shape to be %v, but got %v", name, want, got)
			}
		}
		out, err := ctx.AllocateZeros(0, ctx.Input(0).Shape())
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if d := device.Of(out); d != nil {
			return p.withPlaces(d, &g, ctx.Input(2), func(l gatherscatter.List) {
				gatherscatter.Scatter(elementwise.Add, out, ctx.Input(1), l, 1)
			})
		}
		z, grad := tensor.Values[T](out), tensor.Values[T](ctx.Input(1))
		return p.visit(ctx, &g, func(from, to int) { z[to] = o.add(z[to], grad[from]) })
	}), nil
}

func newArgmaxGradGrad[T tensor.Elem](c *kernel.Construction) (kernel.Kernel, error) {
	p, err := newArgmaxPooling(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in, grad, argmax := ctx.Input(0), ctx.Input(1), ctx.Input(2)
		g, err := p.size(in.Shape())
		if err != nil {
			return err
		}
		if !grad.Shape().Equal(in.Shape()) {
			return status.InvalidArgumentf("Expected grad shape to be %v, but got %v", in.Shape(), grad.Shape())
		}
		want := p.shapeOf(&g)
		if !argmax.Shape().Equal(want) {
			return status.InvalidArgumentf("Expected argmax shape to be %v, but got %v", want, argmax.Shape())
		}
		out, err := ctx.Allocate(0, want)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		if d := device.Of(out); d != nil {
			return p.withPlaces(d, &g, argmax, func(l gatherscatter.List) {
				gatherscatter.Gather(out, grad, l, gatherscatter.Layout{Outer: 1, Rows: grad.NumElements(), Width: 1})
			})
		}
		z, vals := tensor.Values[T](out), tensor.Values[T](grad)
		return p.visit(ctx, &g, func(to, from int) { z[to] = vals[from] })
	}), nil
}
