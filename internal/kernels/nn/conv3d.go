package nn

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
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
	const inputDoc, filterDoc = "Computes the gradient of Conv3D with respect to the input.", "Computes the gradient of Conv3D with respect to the filter."
	attrs := []string{"T: " + floatTypes, "strides: list(int) >= 5", samePadding, dataFormat3D, "dilations: list(int) = [1, 1, 1, 1, 1]"}
	old := []string{"T: {float16, float32, float64}", "strides: list(int) >= 5", samePadding, "dilations: list(int) = [1, 1, 1, 1, 1]"}
	allTypes := []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}
	for _, op := range []struct {
		name, doc string
		in, attrs []string
		shape     opdef.ShapeFn
		run       volumeRun
		types     []tensor.DType
	}{
		{"Conv3D", "Computes a 3-D convolution given a 5-D input and a filter of shape [planes, rows, columns, channels, outputs].",
			[]string{"input: T", "filter: T"}, attrs, conv3DShape, volumeRun{op: "Conv3D"}, allTypes},
		{"Conv3DBackpropInput", inputDoc, []string{"input: T", "filter: T", "out_backprop: T"}, old,
			sameAsInput(0, 5), volumeRun{op: "Conv3DBackpropInputOp"}, []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64}},
		{"Conv3DBackpropFilter", filterDoc, []string{"input: T", "filter: T", "out_backprop: T"}, old,
			sameAsInput(1, 5), volumeRun{op: "Conv3DBackpropFilterOp"}, []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64}},
		{"Conv3DBackpropInputV2", inputDoc, []string{"input_sizes: Tshape", "filter: T", "out_backprop: T"},
			append(slices.Clip(attrs), "Tshape: {int32, int64} = int32"), sizesShape(5),
			volumeRun{op: "Conv3DBackpropInputOp", takesSizes: true}, allTypes},
		{"Conv3DBackpropFilterV2", filterDoc, []string{"input: T", "filter_sizes: int32", "out_backprop: T"}, attrs,
			filterSizesShape(5), volumeRun{op: "Conv3DBackpropFilterOp", takesSizes: true}, allTypes},
	} {
		kernels := kernel.Table{}
		for _, t := range op.types {
			kernels[t] = volumeKernels[t](op.run)
		}
		kernel.Register(kernel.Op{
			Def:     opdef.Def{Name: op.name, Doc: op.doc, In: op.in, Out: []string{"output: T"}, Attrs: op.attrs, Shape: op.shape},
			Kernels: kernel.ByType("T", kernels),
		})
	}
}

var volumeKernels = map[tensor.DType]func(volumeRun) kernel.New{
	tensor.Float16:  func(r volumeRun) kernel.New { return newVolume(r, shortVolume[tensor.Float16Elem]()) },
	tensor.BFloat16: func(r volumeRun) kernel.New { return newVolume(r, shortVolume[tensor.BFloat16Elem]()) },
	tensor.Float32:  func(r volumeRun) kernel.New { return newVolume(r, floatVolume[float32]()) },
	tensor.Float64:  func(r volumeRun) kernel.New { return newVolume(r, floatVolume[float64]()) },
}

// volumeRun selects the operation that a kernel implements.
type volumeRun struct {
	op         string // name of the operation in errors
	takesSizes bool   // an input holds the shape of the result
}

// volumeEngine holds the functions that compute convolutions of volumes and their gradients. Each
// function fills its first slice.
type volumeEngine[T tensor.Elem] struct {
	forward, inputGrad, filterGrad func(v *volume, out, a, b []T)
}

func floatVolume[T simd.Float]() volumeEngine[T] {
	return volumeEngine[T]{volumeForward[T], volumeInputGrad[T], volumeFilterGrad[T]}
}

func shortVolume[H elementwise.Short]() volumeEngine[H] {
	via := func(compute func(v *volume, out, a, b []float32)) func(v *volume, out, a, b []H) {
		return func(v *volume, out, a, b []H) {
			z := membudget.Make[float32](len(out))
			compute(v, z, widened(a), widened(b))
			elementwise.Narrow(out, z)
		}
	}
	return volumeEngine[H]{via(volumeForward[float32]), via(volumeInputGrad[float32]), via(volumeFilterGrad[float32])}
}

func newVolumeWindow(attrs opdef.Attrs) (window, error) {
	w := window{axes: axesOf(attrs, 3), padding: attrs.String("padding")}
	strides, dilations := attrs.Ints("strides"), attrs.Ints("dilations")
	if len(strides) != 5 {
		return w, status.InvalidArgumentf("Sliding window strides field must specify 5 dimensions")
	}
	if len(dilations) != 5 {
		return w, status.InvalidArgumentf("Dilation rates field must specify 5 dimensions")
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	c := w.channel()
	switch {
	case strides[0] != 1 || strides[c] != 1:
		return w, status.InvalidArgumentf("Current implementation does not yet support strides in the batch and depth dimensions.")
	case min(w.stride[0], w.stride[1], w.stride[2]) <= 0:
		return w, status.InvalidArgumentf("Spatial strides should be larger than 0.")
	case dilations[0] != 1 || dilations[c] != 1:
		return w, status.InvalidArgumentf("Current implementation does not yet support dilation rates in the batch and depth dimensions.")
	case min(w.dilation[0], w.dilation[1], w.dilation[2]) <= 0:
		return w, status.InvalidArgumentf("Dilated rates should be larger than 0.")
	}
	return w, nil
}

func newVolume[T tensor.Elem](r volumeRun, e volumeEngine[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newVolumeWindow(c.Attrs)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			switch r.op {
			case "Conv3D":
				return conv3D(ctx, &w, e)
			case "Conv3DBackpropInputOp":
				return conv3DInputGrad(ctx, &w, r, e)
			default:
				return conv3DFilterGrad(ctx, &w, r, e)
			}
		}), nil
	}
}

func conv3D[T tensor.Elem](ctx *kernel.Context, w *window, e volumeEngine[T]) error {
	v, result, err := w.volumeOutput(ctx)
	if err != nil || result.NumElements() == 0 {
		return err
	}
	if d := device.Of(result); d != nil {
		return volumeOnDevice(d, driver.ConvForward, w.axes, &v, 1, ctx.Input(0), ctx.Input(1), result)
	}
	return mapLast(w.axes, result, ctx.Input(0), func(y, x []T) {
		e.forward(&v, y, x, tensor.Values[T](ctx.Input(1)))
	})
}

// volumeOutput checks the input and the filter, and allocates the output.
func (w *window) volumeOutput(ctx *kernel.Context) (v volume, result *tensor.Tensor, err error) {
	in, filter := ctx.Input(0), ctx.Input(1)
	if in.Rank() != 5 {
		return v, nil, status.InvalidArgumentf("input must be 5-dimensional")
	}
	if filter.Rank() != 5 {
		return v, nil, status.InvalidArgumentf("filter must be 5-dimensional")
	}
	channels, f := in.Shape()[w.channel()], filter.Shape()
	switch {
	case f[3] == 0:
		return v, nil, status.InvalidArgumentf("filter_depth must be non-zero")
	case channels != f[3]:
		return v, nil, status.InvalidArgumentf("Input depth must be evenly divisible by filter depth: %d vs %d", channels, f[3])
	case filter.NumElements() == 0:
		return v, nil, status.InvalidArgumentf("filter must not have zero elements (i.e. all dimensions must be non-zero)")
	}
	v = volume{batch: int(in.Shape()[0]), inC: int(channels), outC: int(f[4])}
	out := make([]int64, 3)
	for i := range v.spans {
		s, err := w.span(i, in.Shape()[w.space(i)], f[i])
		if err != nil {
			return v, nil, err
		}
		v.spans[i], out[i] = s, int64(s.out)
	}
	result, err = ctx.Allocate(0, w.shape(in.Shape()[0], out, f[4]))
	return v, result, err
}

// gradVolume checks the shapes of the inputs of a gradient.
func (w *window) gradVolume(op string, in, filter, out tensor.Shape) (v volume, err error) {
	for _, t := range []struct {
		name string
		rank int
	}{{"input", len(in)}, {"filter_sizes", len(filter)}, {"out_backprop", len(out)}} {
		if t.rank != 5 {
			return v, status.InvalidArgumentf("%s tensor must have 5 dimensions", t.name)
		}
	}
	c := w.channel()
	if in[c] != filter[3] {
		return v, status.InvalidArgumentf("input and filter_sizes must have the same number of channels. Got %d for input and %d for filter_sizes",
			in[c], filter[3])
	}
	if out[c] != filter[4] {
		return v, status.InvalidArgumentf("out_backprop and filter_sizes must have the same number of channels. Got %d for out_backprop and %d for filter_sizes",
			out[c], filter[4])
	}
	spans, err := w.checkGradShapes(op, in, filter, out)
	if err != nil {
		return v, err
	}
	return volume{batch: int(in[0]), inC: int(in[c]), outC: int(filter[4]), spans: [3]span(spans)}, nil
}

func conv3DInputGrad[T tensor.Elem](ctx *kernel.Context, w *window, r volumeRun, e volumeEngine[T]) error {
	filter, grad := ctx.Input(1), ctx.Input(2)
	shape := ctx.Input(0).Shape()
	if r.takesSizes {
		if len(shape) != 1 {
			return status.InvalidArgumentf("shape must be a vector of {int32,int64}, got shape %v", shape)
		}
		var err error
		if shape, err = intarg.Shape(intarg.Values(ctx.Input(0))); err != nil {
			return err
		}
	}
	v, err := w.gradVolume(r.op, shape, filter.Shape(), grad.Shape())
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if grad.NumElements() == 0 || filter.NumElements() == 0 {
		return zero(out)
	}
	if d := device.Of(out); d != nil {
		return volumeOnDevice(d, driver.ConvBackwardData, w.axes, &v, 1, out, filter, grad)
	}
	return mapLast(w.axes, out, grad, func(x, y []T) {
		e.inputGrad(&v, x, y, tensor.Values[T](filter))
	})
}

func conv3DFilterGrad[T tensor.Elem](ctx *kernel.Context, w *window, r volumeRun, e volumeEngine[T]) error {
	in, grad := ctx.Input(0), ctx.Input(2)
	shape := ctx.Input(1).Shape()
	if r.takesSizes {
		if len(shape) != 1 {
			return status.InvalidArgumentf("filter_sizes shape must be rank 1 but is rank %d", len(shape))
		}
		var err error
		if shape, err = intarg.Shape(intarg.Values(ctx.Input(1))); err != nil {
			return err
		}
	}
	v, err := w.gradVolume(r.op, in.Shape(), shape, grad.Shape())
	if err != nil {
		return err
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil || in.NumElements() == 0 || out.NumElements() == 0 || grad.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		return volumeOnDevice(d, driver.ConvBackwardFilter, w.axes, &v, 1, in, out, grad)
	}
	return readLast(w.axes, in, grad, func(x, y []T) {
		e.filterGrad(&v, tensor.Values[T](out), x, y)
	})
}

func conv3DShape(c *opdef.ShapeContext) error {
	in, filter, err := convInputs(c, 5)
	if err != nil {
		return err
	}
	w := window{axes: axesOf(c.Attrs, 3), padding: c.Attrs.String("padding")}
	strides, dilations := c.Attrs.Ints("strides"), c.Attrs.Ints("dilations")
	if len(dilations) != 5 {
		return status.InvalidArgumentf("Conv3D requires the dilation attribute to contain 5 values, but got: %d", len(dilations))
	}
	if len(strides) != 5 {
		return status.InvalidArgumentf("Conv3D requires the stride attribute to contain 5 values, but got: %d", len(strides))
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	if err := checkGroups(in.Dim(w.channel()), filter.Dim(3), filter.Dim(4)); err != nil {
		return err
	}
	return w.setOutput(c, in, filter, filter.Dim(4))
}
