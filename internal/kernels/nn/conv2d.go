package nn

import (
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const convTypes = "{float16, bfloat16, float32, float64, int32}"

// convAttrs are the attributes that two-dimensional convolutions have in addition to their type.
var convAttrs = []string{
	"strides: list(int)", "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
	"explicit_paddings: list(int) = []", dataFormat2D, "dilations: list(int) = [1, 1, 1, 1]",
}

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv2D", Doc: "Computes a 2-D convolution given a 4-D input and a filter of shape [rows, columns, channels, outputs]. If the filter has fewer channels than the input, the channels are processed in groups.",
			In: []string{"input: T", "filter: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + convTypes}, convAttrs...), Shape: conv2DShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: conv2D(shortEngine[tensor.Float16Elem]()), tensor.BFloat16: conv2D(bfloatEngine()),
			tensor.Float32: conv2D(floatEngine[float32]()), tensor.Float64: conv2D(floatEngine[float64]()),
			tensor.Int32: conv2D(plainEngine[int32]()),
		}),
	})
}

func conv2D[T tensor.Elem](e convEngine[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newConvWindow(c.Attrs, status.Unimplemented)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, filter := ctx.Input(0), ctx.Input(1)
			s, _, err := w.size(in.Shape(), filter.Shape())
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, w.shape(int64(s.Batch), []int64{int64(s.OutH), int64(s.OutW)}, int64(s.OutC)))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if filter.NumElements() == 0 {
				return status.InvalidArgumentf("filter must not have zero elements (i.e. all dimensions must be non-zero)")
			}
			if in.NumElements() == 0 {
				return zero(out)
			}
			if d := device.Of(out); d != nil {
				return convOnDevice(d, driver.ConvForward, w.axes, &s, in, filter, out)
			}
			return mapLast(w.axes, out, in, func(y, x []T) {
				e.forward(&s, y, x, tensor.Values[T](filter))
			})
		}), nil
	}
}

// conv2DShape is the shape function of Conv2D.
func conv2DShape(c *opdef.ShapeContext) error {
	in, filter, err := convInputs(c, 4)
	if err != nil {
		return err
	}
	w := window{axes: axesOf(c.Attrs, 2), padding: c.Attrs.String("padding"), explicit: c.Attrs.Ints("explicit_paddings")}
	strides, dilations := c.Attrs.Ints("strides"), c.Attrs.Ints("dilations")
	if len(dilations) != 4 {
		return status.InvalidArgumentf("Conv2D requires the dilation attribute to contain 4 values, but got: %d", len(dilations))
	}
	if len(strides) != 4 {
		return status.InvalidArgumentf("Conv2D on data format %s requires the stride attribute to contain 4 values, but got: %d",
			c.Attrs.String("data_format"), len(strides))
	}
	w.stride, w.dilation = w.pick(strides), w.pick(dilations)
	if err := checkGroups(in.Dim(w.channel()), filter.Dim(2), filter.Dim(3)); err != nil {
		return err
	}
	if err := w.checkPadding(); err != nil {
		return err
	}
	return w.setOutput(c, in, filter, filter.Dim(3))
}

// convInputs returns the shapes of the input and the filter of a convolution, as far as they are
// known.
func convInputs(c *opdef.ShapeContext, rank int) (in, filter tensor.PartialShape, err error) {
	if in, err = opdef.WithRank(c.In[0], rank); err == nil {
		filter, err = opdef.WithRank(c.In[1], rank)
	}
	return in, filter, err
}

// checkGroups checks the numbers of channels of an input, a filter and an output; unknown ones are
// negative.
func checkGroups(in, filter, out int64) error {
	if in < 0 || filter < 0 {
		return nil
	}
	if filter == 0 {
		return status.InvalidArgumentf("Depth of filter must not be 0")
	}
	if in%filter != 0 {
		return status.InvalidArgumentf("Depth of input (%d) is not a multiple of input depth of filter (%d)", in, filter)
	}
	if groups := in / filter; groups != 1 && out >= 0 {
		if groups == 0 {
			return status.InvalidArgumentf("Number of groups must not be 0")
		}
		if out%groups != 0 {
			return status.InvalidArgumentf("Depth of output (%d) is not a multiple of the number of groups (%d)", out, groups)
		}
	}
	return nil
}

// setOutput sets the output shape that results from sliding a window of the size of filter over in.
func (w *window) setOutput(c *opdef.ShapeContext, in, filter tensor.PartialShape, channels int64) error {
	spatial := membudget.Make[int64](w.spatial)
	for i := range spatial {
		var err error
		if spatial[i], err = w.outDim(i, in.Dim(w.space(i)), filter.Dim(i)); err != nil {
			return err
		}
	}
	c.SetAll(tensor.MakePartial(w.shape(in.Dim(0), spatial, channels)...))
	return nil
}
