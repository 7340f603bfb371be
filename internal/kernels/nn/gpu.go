package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/sys/bulk"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// gpuWindow is the structure Window of the kernels of devices.
type gpuWindow struct {
	Batch, Channels                   int32
	In, K, Out, Stride, Dilation, Pad [3]int32
	NCHW, Multiplier                  int32
}

func (w *gpuWindow) arg() driver.Struct { return driver.StructOf(w) }

// windowOf returns the window of a convolution.
func windowOf(v *volume) gpuWindow {
	w := gpuWindow{Batch: int32(v.batch), Channels: int32(v.inC), Multiplier: int32(v.outC / max(1, v.inC))}
	w.setSpans(&v.spans)
	return w
}

func (w *gpuWindow) setSpans(spans *[3]span) {
	for i, s := range spans {
		w.In[i], w.K[i], w.Out[i] = int32(s.in), int32(s.filter), int32(s.out)
		w.Stride[i], w.Dilation[i], w.Pad[i] = int32(s.stride), int32(s.dilation), int32(s.before)
	}
}

// imageVolume returns the convolution of volumes with one plane that is a convolution of images.
func imageVolume(s *conv.Shape) volume {
	return volume{batch: s.Batch, inC: s.InC, outC: s.OutC, spans: [3]span{
		one,
		{in: s.InH, filter: s.FilterH, out: s.OutH, stride: s.StrideH, dilation: s.DilationH, before: s.PadTop},
		{in: s.InW, filter: s.FilterW, out: s.OutW, stride: s.StrideW, dilation: s.DilationW, before: s.PadLeft},
	}}
}

// zero clears a tensor in any memory.
func zero(t *tensor.Tensor) error {
	if d := device.Of(t); d != nil {
		return d.Fill(t, 0)
	}
	bulk.Clear(t.Bytes())
	return nil
}

// alloc allocates a tensor in the memory of another.
func alloc(like *tensor.Tensor, dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	if d := device.Of(like); d != nil {
		return d.Alloc(dtype, shape)
	}
	return tensor.Alloc(dtype, shape)
}

// onDevice sets out to what f computes from in, both with channels last.
func (a axes) onDevice(out, in *tensor.Tensor, f func(z, x *tensor.Tensor) error) error {
	x, err := a.channelsLast(in)
	if err != nil {
		return err
	}
	defer x.Release()
	return a.write(out, func(z *tensor.Tensor) error { return f(z, &x) })
}

// depthwiseOnDevice queues a depthwise convolution or one of its gradients. form is the end of the
// kernel's name. The tensors have channels last.
func depthwiseOnDevice(d *device.Device, form string, s *conv.Shape, out, x, y *tensor.Tensor) error {
	v, n := imageVolume(s), int64(out.NumElements())
	w := windowOf(&v)
	name := "depthwise_" + source.TypeName(out.DType()) + form
	if form != "_filter" {
		return d.LaunchLine(name, n, out, x, y, n, w.arg())
	}
	return d.Launch(name, [3]int{int(min(n, 1<<16)), 1, 1}, [3]int{256, 1, 1}, out, x, y, n, w.arg())
}

// gpuWindow returns the windows of a grid.
func (p *pooling) gpuWindow(g *grid) gpuWindow {
	w := gpuWindow{Batch: int32(g.batch), Channels: int32(g.channels), Multiplier: 1}
	if p.first {
		w.NCHW = 1
	}
	w.setSpans(&g.spans)
	return w
}

// poolOnDevice queues a pooling or a gradient. The arguments of the kernel are out, the inputs, the
// number of elements of out and the window.
func (p *pooling) poolOnDevice(d *device.Device, name string, g *grid, out *tensor.Tensor, inputs ...any) error {
	w, n := p.gpuWindow(g), int64(out.NumElements())
	args := append([]any{out}, inputs...)
	return d.LaunchLine(name, n, append(args, n, w.arg())...)
}

// maxGradOnDevice queues the gradient of a maximum: first the positions of the largest elements,
// then the sums over the windows that have them.
func (p *pooling) maxGradOnDevice(d *device.Device, g *grid, out, in, grad *tensor.Tensor) error {
	at, err := d.Alloc(tensor.Int32, grad.Shape())
	if err != nil {
		return err
	}
	defer at.Release()
	if err := p.poolOnDevice(d, poolName("max", in, "_first"), g, &at, in); err != nil {
		return err
	}
	return p.poolOnDevice(d, poolName("max", out, "_grad"), g, out, &at, grad)
}

// onDevice queues a maximum and its positions.
func (p *argmaxPooling) onDevice(d *device.Device, g *grid, out, argmax, in *tensor.Tensor) error {
	w, n, withBatch := p.gpuWindow(g), int64(out.NumElements()), int32(0)
	if p.withBatch {
		withBatch = 1
	}
	return d.LaunchLine(poolName("max", in, "_at"), n, out, argmax, in, n, withBatch, w.arg())
}

// withPlaces calls f with the places in the whole input that positions stand for.
func (p *argmaxPooling) withPlaces(d *device.Device, g *grid, argmax *tensor.Tensor, f func(gatherscatter.List)) error {
	places := argmax.Retain()
	defer func() { places.Release() }()
	if n := int64(argmax.NumElements()); !p.withBatch {
		shifted, err := d.Alloc(tensor.Int64, argmax.Shape())
		if err != nil {
			return err
		}
		places.Release()
		places = shifted
		perImage, size := n/int64(g.batch), int64(g.inPixels())*int64(g.channels)
		if err := d.LaunchLine("imageplaces", n, &places, argmax, n, perImage, size); err != nil {
			return err
		}
	}
	list, err := gatherscatter.ReadUnchecked(&places)
	if err != nil {
		return err
	}
	defer list.Release()
	f(list)
	return nil
}

// poolName returns the name of a kernel for pooling tensors of a type.
func poolName(kind string, t *tensor.Tensor, form string) string {
	return kind + "pool_" + source.TypeName(t.DType()) + form
}

// topKOnDevice queues a search for the k largest elements of rows: it sorts them all.
func topKOnDevice(d *device.Device, values, indices, in *tensor.Tensor, k int64) error {
	n := int64(in.Dim(in.Rank() - 1))
	padded := gatherscatter.SortedLen(n)
	rows, name := int64(in.NumElements())/n, "topkeys_"+source.TypeName(in.DType())
	keys, err := d.Alloc(tensor.Uint64, tensor.Shape{rows, padded})
	if err != nil {
		return err
	}
	defer keys.Release()
	if err := d.LaunchLine(name, rows*padded, &keys, in, rows, n, padded); err != nil {
		return err
	}
	if err := gatherscatter.SortRows(d, &keys, rows*padded, padded); err != nil {
		return err
	}
	return d.LaunchLine(name+"_values", rows*k, values, indices, &keys, in, rows, n, padded, k)
}

// lrnArgs are the last arguments of the kernels of local response normalization.
func (l *lrn) args(n int64, channels int) []any {
	return []any{n, int32(channels), int32(min(l.radius, channels)), l.bias, l.alpha, l.beta}
}

// columns queues a sum over rows of a term for each channel. out is divided by count if that is
// positive.
func columns(d *device.Device, name string, out, x, g, mean, scale *tensor.Tensor, rows, channels, count int64) error {
	across := (channels + 31) / 32
	splits := min(max(1, 4*int64(max(2, d.Info().Multiprocessors))/across), max(1, rows/64), 1024)
	name += "_" + source.TypeName(x.DType())
	items, groups := [3]int{32, 8, 1}, [3]int{int(splits * across), 1, 1}
	if splits == 1 {
		return d.Launch(name, groups, items, out, x, g, mean, scale, rows, channels, int32(1), count)
	}
	partial, err := d.Alloc(tensor.Float32, tensor.Shape{splits, channels})
	if err != nil {
		return err
	}
	defer partial.Release()
	if err := d.Launch(name, groups, items, &partial, x, g, mean, scale, rows, channels, int32(splits), int64(0)); err != nil {
		return err
	}
	return d.Launch("sum_f32_cols", [3]int{int(across), 1, 1}, items, out, &partial, int64(1), splits, channels, int32(1), count2(count))
}

// count2 is the divisor of a reduction, which has none if it is negative.
func count2(count int64) int64 {
	if count == 0 {
		return -1
	}
	return count
}

// onDevice queues the normalization. out are outputs 0 to 4.
func (b *batchNorm) onDevice(ctx *kernel.Context, d *device.Device, out *tensor.Tensor, stats [4]*tensor.Tensor) error {
	a := axes{first: b.first, spatial: out.Rank() - 2}
	scale, offset, given, givenVar := ctx.Input(1), ctx.Input(2), ctx.Input(3), ctx.Input(4)
	channels := int64(scale.NumElements())
	rows, n := int64(out.NumElements())/channels, int64(out.NumElements())
	step := func(z, x, y *tensor.Tensor, factor float32, what int32) error {
		return d.LaunchLine("normstep", channels, z, x, y, channels, factor, what)
	}
	return a.onDevice(out, ctx.Input(0), func(z, x *tensor.Tensor) error {
		mean, variance := stats[2], stats[3]
		var err error
		try := func(f func() error) {
			if err == nil {
				err = f()
			}
		}
		if b.training {
			try(func() error { return columns(d, "colsum", mean, x, x, scale, scale, rows, channels, rows) })
			try(func() error { return columns(d, "colsquares", variance, x, x, mean, scale, rows, channels, rows) })
			unbiased := float32(float64(rows) / math.Max(float64(rows)-1, 1))
			try(func() error { return step(stats[0], mean, mean, 1, 0) })
			try(func() error { return step(stats[1], variance, variance, unbiased, 0) })
			if b.factor != 1 {
				try(func() error { return step(stats[0], given, stats[0], b.factor, 1) })
				try(func() error { return step(stats[1], givenVar, stats[1], b.factor, 1) })
			}
		} else {
			mean, variance = given, givenVar
			for i := range 2 {
				try(func() error { return step(stats[2*i], given, given, 1, 0) })
				try(func() error { return step(stats[2*i+1], givenVar, givenVar, 1, 0) })
			}
		}
		try(func() error {
			relu := int32(0)
			if b.relu {
				relu = 1
			}
			return d.LaunchLine("normalize_"+source.TypeName(x.DType()), n, z, x, mean, variance, scale, offset, n, uint32(channels), b.epsilon, relu)
		})
		return err
	})
}

// onDevice queues the gradients.
func (b *batchNormGrad) onDevice(ctx *kernel.Context, d *device.Device, out, dScale, dOffset *tensor.Tensor) error {
	a := axes{first: b.first, spatial: out.Rank() - 2}
	scale, mean, variance := ctx.Input(2), ctx.Input(3), ctx.Input(4)
	channels := int64(scale.NumElements())
	rows, n := int64(out.NumElements())/channels, int64(out.NumElements())
	grad, err := a.channelsLast(ctx.Input(0))
	if err != nil {
		return err
	}
	defer grad.Release()
	pair, err := d.Alloc(tensor.Float32, tensor.Shape{2, channels})
	if err != nil {
		return err
	}
	defer pair.Release()
	one, dot := pair.Rows(0, 1), pair.Rows(1, 2)
	return a.onDevice(out, ctx.Input(1), func(z, x *tensor.Tensor) error {
		if err := d.LaunchLine("fillbits_u32", channels, &one, channels, uint64(math.Float32bits(1))); err != nil {
			return err
		}
		if err := columns(d, "colsum", dOffset, &grad, &grad, scale, scale, rows, channels, 0); err != nil {
			return err
		}
		if err := columns(d, "coldot", &dot, x, &grad, mean, &one, rows, channels, 0); err != nil {
			return err
		}
		if err := d.LaunchLine("normstep", channels, dScale, &dot, variance, channels, b.epsilon, int32(2)); err != nil {
			return err
		}
		frozen := int32(1)
		if b.training {
			frozen = 0
		}
		return d.LaunchLine("normgrad_"+source.TypeName(x.DType()), n, z, &grad, x, mean, variance, scale, dOffset, &dot, n, uint32(channels), rows,
			b.epsilon, frozen)
	})
}

// emptyOnDevice sets the statistics of no elements: NaN, and zeros for the gradient.
func (b *batchNorm) emptyOnDevice(stats [4]*tensor.Tensor) error {
	for i, t := range stats {
		value := byte(0)
		if i < 2 {
			value = 0xff // all bits set are a NaN
		}
		if d := device.Of(t); d != nil {
			if err := d.Fill(t, value); err != nil {
				return err
			}
		}
	}
	return nil
}
