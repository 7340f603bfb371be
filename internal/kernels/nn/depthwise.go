package nn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/conv"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: " + floatTypes, "strides: list(int)", anyPadding, explicitAttr, dataFormat2D, "dilations: list(int) = [1, 1, 1, 1]"}
	for _, op := range []struct {
		name, doc string
		in        []string
		shape     opdef.ShapeFn
		run       depthwiseRun
	}{
		{
			"DepthwiseConv2dNative",
			"Computes a 2-D depthwise convolution given a 4-D input and a filter of shape [rows, columns, channels, outputs per channel].",
			[]string{"input: T", "filter: T"}, depthwiseShape, depthwiseRun{forward: true},
		},
		{
			"DepthwiseConv2dNativeBackpropInput", "Computes the gradient of DepthwiseConv2dNative with respect to the input.",
			[]string{"input_sizes: int32", "filter: T", "out_backprop: T"}, sizesShape(4), depthwiseRun{sizes: 0},
		},
		{
			"DepthwiseConv2dNativeBackpropFilter", "Computes the gradient of DepthwiseConv2dNative with respect to the filter.",
			[]string{"input: T", "filter_sizes: int32", "out_backprop: T"}, filterSizesShape(4), depthwiseRun{sizes: 1},
		},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{Name: op.name, Doc: op.doc, In: op.in, Out: []string{"output: T"}, Attrs: attrs, Shape: op.shape},
			Kernels: kernel.ByType("T", kernel.Table{
				tensor.Float16:  newDepthwiseKernel(op.run, shortDepthwise[tensor.Float16Elem]()),
				tensor.BFloat16: newDepthwiseKernel(op.run, shortDepthwise[tensor.BFloat16Elem]()),
				tensor.Float32:  newDepthwiseKernel(op.run, depthwiseEngine[float32]()),
				tensor.Float64:  newDepthwiseKernel(op.run, depthwiseEngine[float64]()),
			}),
		})
	}
}

func depthwiseShape(c *opdef.ShapeContext) error {
	in, filter, err := convInputs(c, 4)
	if err != nil {
		return err
	}
	w := window{axes: axesOf(c.Attrs, 2), padding: c.Attrs.String("padding"), explicit: c.Attrs.Ints("explicit_paddings")}
	strides, dilations := c.Attrs.Ints("strides"), c.Attrs.Ints("dilations")
	if len(strides) != 4 {
		return status.InvalidArgumentf("DepthwiseConv2D requires the stride attribute to contain 4 values, but got: %d", len(strides))
	}
	if len(dilations) != 4 {
		return status.InvalidArgumentf("DepthwiseConv2D requires the dilations attribute to contain 4 values, but got: %d", len(dilations))
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	depth, err := opdef.MergeDims(in.Dim(w.channel()), filter.Dim(2))
	if err != nil {
		return err
	}
	if err := w.checkPadding(); err != nil {
		return err
	}
	return w.setOutput(c, in, filter, shapefn.Times(depth, filter.Dim(3)))
}

// depthwiseRun selects one of the three operations: the convolution or one of its gradients.
type depthwiseRun struct {
	forward bool
	sizes   int
}

func newDepthwiseWindow(attrs opdef.Attrs) (window, error) {
	w := window{axes: axesOf(attrs, 2), padding: attrs.String("padding"), explicit: attrs.Ints("explicit_paddings")}
	strides, dilations := attrs.Ints("strides"), attrs.Ints("dilations")
	if len(strides) != 4 {
		return w, status.InvalidArgumentf("Sliding window strides field must specify 4 dimensions")
	}
	if len(dilations) != 4 {
		return w, status.InvalidArgumentf("Sliding window dilations field must specify 4 dimensions")
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	if w.stride[0] != w.stride[1] {
		return w, status.InvalidArgumentf(
			"Current implementation only supports equal length strides in the row and column dimensions.")
	}
	if strides[0] != 1 || strides[w.channel()] != 1 {
		return w, status.InvalidArgumentf("Current implementation does not yet support strides in the batch and depth dimensions.")
	}
	return w, w.checkPadding()
}

func newDepthwiseKernel[T tensor.Elem](run depthwiseRun, e convEngine[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newDepthwiseWindow(c.Attrs)
		if err != nil {
			return nil, err
		}
		switch {
		case run.forward:
			return kernel.Func(func(ctx *kernel.Context) error { return depthwiseConv(ctx, &w, e) }), nil
		case run.sizes == 0:
			return kernel.Func(func(ctx *kernel.Context) error { return depthwiseInput(ctx, &w, e) }), nil
		default:
			return kernel.Func(func(ctx *kernel.Context) error { return depthwiseFilter(ctx, &w, e) }), nil
		}
	}
}

func depthwiseConv[T tensor.Elem](ctx *kernel.Context, w *window, e convEngine[T]) error {
	s, out, err := w.depthwiseOutput(ctx)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		return w.onDevice(out, ctx.Input(0), func(y, x *tensor.Tensor) error {
			return depthwiseOnDevice(d, "", &s, y, x, ctx.Input(1))
		})
	}
	return mapLast(w.axes, out, ctx.Input(0), func(y, x []T) {
		e.forward(&s, y, x, tensor.Values[T](ctx.Input(1)))
	})
}

// depthwiseOutput checks the input and the filter, and allocates the output.
func (w *window) depthwiseOutput(ctx *kernel.Context) (s conv.Shape, out *tensor.Tensor, err error) {
	in, filter := ctx.Input(0), ctx.Input(1)
	if in.Rank() != 4 {
		return s, nil, status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	}
	if filter.Rank() != 4 {
		return s, nil, status.InvalidArgumentf("filter must be 4-dimensional: %v", filter.Shape())
	}
	channels := in.Shape()[w.channel()]
	if channels != filter.Shape()[2] {
		return s, nil, status.InvalidArgumentf("input and filter must have the same depth: %d vs %d", channels, filter.Shape()[2])
	}
	if s, err = w.depthwiseSize(in.Shape(), filter.Shape()); err != nil {
		return s, nil, err
	}
	out, err = ctx.Allocate(0, w.shape(int64(s.Batch), []int64{int64(s.OutH), int64(s.OutW)}, int64(s.OutC)))
	return s, out, err
}

func (w *window) depthwiseSize(in, filter tensor.Shape) (conv.Shape, error) {
	rows, err := w.span(0, in[w.space(0)], filter[0])
	if err != nil {
		return conv.Shape{}, err
	}
	cols, err := w.span(1, in[w.space(1)], filter[1])
	if err != nil {
		return conv.Shape{}, err
	}
	c := in[w.channel()]
	return convShape(int(in[0]), int(c), int(c*filter[3]), rows, cols), nil
}

// depthwiseGradSize checks the shapes of the inputs of a gradient.
func (w *window) depthwiseGradSize(op string, in, filter, out tensor.Shape) (s conv.Shape, err error) {
	for _, t := range []struct {
		name string
		rank int
	}{{"input", len(in)}, {"filter", len(filter)}, {"out_backprop", len(out)}} {
		if t.rank != 4 {
			return s, status.InvalidArgumentf("%s: %s must be 4-dimensional", op, t.name)
		}
	}
	c := w.channel()
	switch {
	case in[0] != out[0]:
		return s, status.InvalidArgumentf("%s: input and out_backprop must have the same batch size", op)
	case in[c] != filter[2]:
		return s, status.InvalidArgumentf("%s: input and filter must have the same in_depth", op)
	case filter[3]*in[c] != out[c]:
		return s, status.InvalidArgumentf("%s: depth_multiplier * in_depth not equal to out_depth", op)
	}
	if s, err = w.depthwiseSize(in, filter); err != nil {
		return s, err
	}
	for i, name := range []string{"rows", "cols"} {
		if want, got := int64([]int{s.OutH, s.OutW}[i]), out[w.space(i)]; want != got {
			return s, status.InvalidArgumentf("%s: Number of %s of out_backprop doesn't match computed: actual = %d, computed = %d", op, name, got, want)
		}
	}
	return s, nil
}

// depthwiseShapeInput reads a shape from input i, which errors call name.
func depthwiseShapeInput(ctx *kernel.Context, i int, op, name string) (tensor.Shape, error) {
	in := ctx.Input(i)
	if in.Rank() != 1 {
		return nil, status.InvalidArgumentf("%s: %s input must be 1-dim, not %d", op, name, in.Rank())
	}
	dims := intarg.Values(in)
	for j, d := range dims {
		if d < 0 {
			return nil, status.InvalidArgumentf("Dimension %d of %s must be >= 0", j, name)
		}
	}
	return intarg.Shape(dims)
}

func depthwiseInput[T tensor.Elem](ctx *kernel.Context, w *window, e convEngine[T]) error {
	shape, err := depthwiseShapeInput(ctx, 0, "Conv2DBackpropInput", "input_sizes")
	if err != nil {
		return err
	}
	filter, grad := ctx.Input(1), ctx.Input(2)
	s, err := w.depthwiseGradSize("DepthwiseConv2DBackpropInput", shape, filter.Shape(), grad.Shape())
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		return w.onDevice(out, grad, func(x, y *tensor.Tensor) error {
			return depthwiseOnDevice(d, "_input", &s, x, y, filter)
		})
	}
	return mapLast(w.axes, out, grad, func(x, y []T) {
		e.inputGrad(&s, x, y, tensor.Values[T](filter))
	})
}

func depthwiseFilter[T tensor.Elem](ctx *kernel.Context, w *window, e convEngine[T]) error {
	shape, err := depthwiseShapeInput(ctx, 1, "Conv2DBackpropFilter", "filter_sizes")
	if err != nil {
		return err
	}
	in, grad := ctx.Input(0), ctx.Input(2)
	s, err := w.depthwiseGradSize("DepthwiseConv2DBackpropFilter", in.Shape(), shape, grad.Shape())
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		y, err := w.channelsLast(grad)
		if err != nil {
			return err
		}
		defer y.Release()
		x, err := w.channelsLast(in)
		if err != nil {
			return err
		}
		defer x.Release()
		return depthwiseOnDevice(d, "_filter", &s, out, &x, &y)
	}
	return readLast(w.axes, in, grad, func(x, y []T) {
		e.filterGrad(&s, tensor.Values[T](out), x, y)
	})
}
