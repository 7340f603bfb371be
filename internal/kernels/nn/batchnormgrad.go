package nn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Computes the gradients of batch normalization with respect to its input, scale and offset."
	types := []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32}
	for _, v := range []struct {
		name, stat, scale string
		attrs             []string
		reserved          int // number of inputs that are outputs of the forward operation
		format            string
	}{
		{"FusedBatchNormGrad", "T", "T", []string{"T: {float32}"}, 2, dataFormat2D},
		{"FusedBatchNormGradV2", "U", "float32", []string{shortAndFloat, "U: {float32}"}, 2, dataFormat2D},
		{"FusedBatchNormGradV3", "U", "float32", []string{shortAndFloat, "U: {float32}"}, 3, dataFormatsBoth},
	} {
		in := []string{"y_backprop: T", "x: T", "scale: " + v.scale}
		reserve := []string{"reserve_space_1", "reserve_space_2", "reserve_space_3", "reserve_space_4", "reserve_space_5"}
		for _, name := range reserve[:v.reserved] {
			in = append(in, name+": "+v.stat)
		}
		out := []string{"x_backprop: T"}
		for _, name := range append([]string{"scale_backprop", "offset_backprop"}, reserve[v.reserved:v.reserved+2]...) {
			out = append(out, name+": "+v.stat)
		}
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: v.name, Doc: doc, In: in, Out: out,
				Attrs: append(v.attrs, epsilonAttr, v.format, trainingAttr), Shape: batchNormGradShape,
			},
			Kernels: kernel.ForTypes("T", func(c *kernel.Construction) (kernel.Kernel, error) {
				return &batchNormGrad{channelsFirst(c.Attrs), c.Attrs.Bool("is_training"), c.Attrs.Float("epsilon")}, nil
			}, types...),
		})
	}
}

func batchNormGradShape(c *opdef.ShapeContext) error {
	a := batchAxes(c.Attrs)
	grad, err := opdef.WithRank(c.In[0], a.rank())
	if err != nil {
		return err
	}
	x, err := opdef.WithRank(c.In[1], a.rank())
	if err != nil {
		return err
	}
	channels, err := opdef.MergeDims(grad.Dim(a.channel()), x.Dim(a.channel()))
	if err != nil {
		return err
	}
	if channels, err = mergeVectors(c, channels, 2, 5); err != nil {
		return err
	}
	c.SetAll(tensor.MakePartial(0))
	c.Out[0] = withDim(grad, a.channel(), channels)
	c.Out[1], c.Out[2] = tensor.MakePartial(channels), tensor.MakePartial(channels)
	return nil
}

// batchNormGrad computes gradients from the mean and the variance that batchNorm normalized with.
type batchNormGrad struct {
	first, training bool
	epsilon         float32
}

func (b *batchNormGrad) check(ctx *kernel.Context) error {
	for i := range 2 {
		if s := ctx.Input(i).Shape(); len(s) != 4 && len(s) != 5 {
			return status.InvalidArgumentf("input must be 4 or 5-dimensional%v", s)
		}
	}
	for i, name := range []string{"scale", "saved mean", "saved variance"} {
		if s := ctx.Input(i + 2).Shape(); len(s) != 1 {
			return status.InvalidArgumentf("%s must be 1-dimensional%v", name, s)
		}
	}
	grad, x := ctx.Input(0).Shape(), ctx.Input(1).Shape()
	if !x.Equal(grad) {
		return status.InvalidArgumentf("x and y_backprop must have same shape, but x has shape %v and y_backprop has shape %v", x, grad)
	}
	channels := x[channelAxis(x, b.first)]
	for i, name := range []string{"scale", "reserve_space_1", "reserve_space_2"} {
		if n := ctx.Input(i + 2).Shape()[0]; n != channels {
			return status.InvalidArgumentf("%s must have the same number of elements as the channels of x, got %d and %d", name, n, channels)
		}
	}
	return nil
}

func (b *batchNormGrad) Compute(ctx *kernel.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	out, err := ctx.AllocateLike(0, ctx.Input(1))
	if err != nil {
		return err
	}
	dScale, err := ctx.AllocateLike(1, ctx.Input(2))
	if err != nil {
		return err
	}
	dOffset, err := ctx.AllocateLike(2, ctx.Input(2))
	if err != nil {
		return err
	}
	for i := range 2 {
		if _, err := ctx.Allocate(3+i, tensor.Shape{0}); err != nil {
			return err
		}
	}
	if out.NumElements() == 0 {
		if err := zero(dScale); err != nil {
			return err
		}
		return zero(dOffset)
	}
	if d := device.Of(out); d != nil {
		return b.onDevice(ctx, d, out, dScale, dOffset)
	}
	z, done := wideOutput(out)
	b.gradients(ctx, z, tensor.Values[float32](dScale), tensor.Values[float32](dOffset))
	done()
	return nil
}

// gradients sets dx, dScale and dOffset.
//
// Let x' = x - mean, r = 1/√(variance + epsilon), and n the number of elements per channel. Then
// dOffset = Σ dy and dScale = r * Σ dy*x'. With the statistics of the batch, which depend on x, dx
// = scale * r * (dy - dOffset/n - x' * r² * Σ dy*x' / n). With given statistics, dx = scale * r *
// dy.
func (b *batchNormGrad) gradients(ctx *kernel.Context, dx, dScale, dOffset []float32) {
	dy, x := wide(ctx.Input(0)), wide(ctx.Input(1))
	l := layoutOf(ctx.Input(1).Shape(), b.first)
	scale, mean := tensor.Values[float32](ctx.Input(2)), tensor.Values[float32](ctx.Input(3))
	variance := tensor.Values[float32](ctx.Input(4))
	root := values(l.channels, func(c int) float32 { return inverseRoot(variance[c] + b.epsilon) })
	sums, products := productsOf(dy, x, mean, l)
	for c, v := range products {
		dOffset[c], dScale[c] = float32(sums[c]), float32(v)*root[c]
	}
	factor := values(l.channels, func(c int) float32 { return scale[c] * root[c] })
	if !b.training {
		l.pieces(func(lo, hi, c int) { factor.mul(dx[lo:hi], dy[lo:hi], c) })
		return
	}
	n := float64(l.outer * l.inner)
	slope := values(l.channels, func(c int) float32 { return -factor[c] * root[c] * root[c] * float32(products[c]/n) })
	level := values(l.channels, func(c int) float32 { return -factor[c] * float32(sums[c]/n) })
	shift := values(l.channels, func(c int) float32 { return -mean[c] })
	l.pieces(func(lo, hi, c int) {
		z, x, dy := dx[lo:hi], x[lo:hi], dy[lo:hi]
		if c < 0 {
			simd.NormalizeGrad(z, dy, x, mean, factor, slope, level)
			return
		}
		shift.add(z, x, c)
		slope.mul(z, z, c)
		level.add(z, z, c)
		simd.Axpy(z, factor[c], dy)
	})
}
