package nn

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv", Doc: "Computes an N-D convolution of 4-D or 5-D inputs, depending on the rank of the filter. The first batch_dims dimensions of the input are batch dimensions.",
			In: []string{"input: T", "filter: T"}, Out: []string{"output: T"},
			Attrs: []string{
				"T: " + convTypes, "strides: list(int)", anyPadding, explicitAttr, "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
				"dilations: list(int) = []", "batch_dims: int = 1", "groups: int = 1",
			},
			Shape: convShapeFn,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16:  newConv(shortEngine[tensor.Float16Elem](), shortVolume[tensor.Float16Elem]().forward),
			tensor.BFloat16: newConv(bfloatEngine(), shortVolume[tensor.BFloat16Elem]().forward),
			tensor.Float32:  newConv(floatEngine[float32](), volumeForward[float32]),
			tensor.Float64:  newConv(floatEngine[float64](), volumeForward[float64]),
			tensor.Int32:    newConv(plainEngine[int32](), volumePlain[int32]),
		}),
	})
}

// anyConv holds the attributes of Conv, a convolution of images or volumes.
type anyConv struct {
	batchDims, groups  int
	first              bool
	strides, dilations []int64
	padding            string
	explicit           []int64
}

func newAnyConv(attrs opdef.Attrs) anyConv {
	return anyConv{
		attrs.Int("batch_dims"), attrs.Int("groups"), attrs.String("data_format") == "CHANNELS_FIRST", attrs.Ints("strides"), attrs.Ints("dilations"),
		attrs.String("padding"), attrs.Ints("explicit_paddings"),
	}
}

// window returns the window for an input with the given number of spatial dimensions.
func (a *anyConv) window(spatial int) window {
	//sizedmake:ok a rank
	w := window{axes: axes{spatial, a.first}, padding: a.padding, explicit: a.explicit, dilation: slices.Repeat([]int64{1}, spatial)}
	w.stride = w.pick(a.strides)
	if len(a.dilations) > 0 {
		w.dilation = w.pick(a.dilations)
	}
	return w
}

func convShapeFn(c *opdef.ShapeContext) error {
	a, in, filter := newAnyConv(c.Attrs), c.In[0], c.In[1]
	if in.Rank() < 0 || filter.Rank() < 0 {
		return nil
	}
	if a.batchDims < 0 {
		return status.InvalidArgumentf("Batch dims must be non-negative.")
	}
	rank := in.Rank() - (a.batchDims - 1)
	switch {
	case rank != 4 && rank != 5:
		return status.InvalidArgumentf("Input tensor must be rank 4 or 5, excluding extra batch dimensions, but got: %d", rank)
	case filter.Rank() != 4 && filter.Rank() != 5:
		return status.InvalidArgumentf("Filter tensor must be rank 4 or 5, but got: %d", rank)
	case filter.Rank() != rank:
		return status.InvalidArgumentf("Input tensor rank must be the same as filter rank.")
	case len(a.dilations) > 0 && len(a.dilations) != rank:
		return status.InvalidArgumentf("Conv requires the dilation attribute to contain %d values, but got: %d", rank, len(a.dilations))
	case len(a.strides) != rank:
		return status.InvalidArgumentf("Stride attribute should contain %d values, but got: %d", rank, len(a.strides))
	}
	w := a.window(rank - 2)
	// input with its batch dimensions replaced by a single one
	one := shapefn.Concat(shapefn.Of(shapefn.Unknown), shapefn.From(in, a.batchDims))
	if err := a.checkChannels(one.Dim(w.channel()), filter.Dim(rank-2), filter.Dim(rank-1)); err != nil {
		return err
	}
	if rank == 5 && a.padding == paddingExplicit {
		return status.InvalidArgumentf("Explicit padding not supported for 3D Convolution")
	}
	if err := w.checkPadding(); err != nil {
		return err
	}
	if err := w.setOutput(c, one, filter, filter.Dim(rank-1)); err != nil {
		return err
	}
	c.SetAll(shapefn.Concat(shapefn.Sub(in, 0, a.batchDims), shapefn.From(c.Out[0], 1)))
	return nil
}

// checkChannels checks the numbers of channels of an input, a filter and an output; unknown ones
// are negative.
func (a *anyConv) checkChannels(in, filter, out int64) error {
	switch groups := int64(a.groups); {
	case groups < 1:
		return status.InvalidArgumentf("Groups attribute should be a positive integer")
	case in >= 0 && in%groups != 0:
		return status.InvalidArgumentf("Number of groups should divide input depth")
	case out >= 0 && out%groups != 0:
		return status.InvalidArgumentf("Number of groups should divide output depth")
	case in < 0 || filter < 0:
		return nil
	case filter == 0:
		return status.InvalidArgumentf("Depth of filter must not be 0")
	case in%filter != 0:
		return status.InvalidArgumentf("Depth of input (%d) is not a multiple of input depth of filter (%d)", in, filter)
	case in/filter != groups:
		return status.InvalidArgumentf("Input depth divided by filter input depth does not match with groups parameter (%d)", groups)
	}
	return nil
}

func newConv[T tensor.Elem](e convEngine[T], volumes func(v *volume, out, a, b []T)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		a := newAnyConv(c.Attrs)
		if a.groups != 1 {
			return nil, status.Unimplementedf("Grouped/Depthwise Convolutions are not supported yet.")
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, filter := ctx.Input(0), ctx.Input(1)
			w, err := a.check(in.Shape(), filter)
			if err != nil {
				return err
			}
			batch := in.Shape()[:a.batchDims]
			flat, err := in.WithShape(slices.Concat(tensor.Shape{batch.NumElements()}, in.Shape()[a.batchDims:]))
			if err != nil {
				return err
			}
			channels := flat.Shape()[w.channel()]
			if depth := filter.Shape()[w.spatial]; channels != depth {
				return status.InvalidArgumentf("Input depth must be equal to filter depth: %d vs %d", channels, depth)
			}
			v := volume{batch: flat.Dim(0), inC: int(channels), outC: filter.Dim(w.spatial + 1), spans: [3]span{one, one, one}}
			spans, sizes := membudget.Make[span](w.spatial), membudget.Make[int64](w.spatial)
			for i := range spans {
				if spans[i], err = w.span(i, flat.Shape()[w.space(i)], filter.Shape()[i]); err != nil {
					return err
				}
				sizes[i] = int64(spans[i].out)
			}
			shape := w.shape(int64(v.batch), sizes, int64(v.outC))
			out, err := ctx.Allocate(0, slices.Concat(batch, shape[1:]))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if in.NumElements() == 0 {
				return zero(out)
			}
			flatOut, err := out.WithShape(shape)
			if err != nil {
				return err
			}
			if d := device.Of(out); d != nil {
				copy(v.spans[3-w.spatial:], spans)
				return volumeOnDevice(d, driver.ConvForward, w.axes, &v, 1, &flat, filter, &flatOut)
			}
			x, err := w.channelsLast(&flat)
			if err != nil {
				return err
			}
			defer x.Release()
			return w.write(&flatOut, func(y *tensor.Tensor) error {
				if w.spatial == 2 {
					s := convShape(v.batch, v.inC, v.outC, spans[0], spans[1])
					e.forward(&s, tensor.Values[T](y), tensor.Values[T](&x), tensor.Values[T](filter))
					return nil
				}
				v.spans = [3]span(spans)
				volumes(&v, tensor.Values[T](y), tensor.Values[T](&x), tensor.Values[T](filter))
				return nil
			})
		}), nil
	}
}

// check validates everything except the sizes of the input and returns the window.
func (a *anyConv) check(in tensor.Shape, filter *tensor.Tensor) (window, error) {
	spatial := len(in) - 1 - a.batchDims
	ax := axes{spatial, a.first}
	switch {
	case spatial != 2 && spatial != 3:
		return window{}, status.InvalidArgumentf("The input must have 2 or 3 spatial dimensions but got %d", spatial)
	case filter.NumElements() == 0:
		return window{}, status.InvalidArgumentf("filter must not have zero elements (i.e. all dimensions must be non-zero)")
	case filter.Rank() != 4 && filter.Rank() != 5:
		return window{}, status.InvalidArgumentf("The filter must be rank 4 or 5 but got %d", filter.Rank())
	case filter.Rank() != spatial+2:
		return window{}, status.InvalidArgumentf("Input tensor rank must be the same as filter rank.")
	case a.batchDims < 0:
		return window{}, status.InvalidArgumentf("Batch dims must be non-negative.")
	case len(a.strides) != spatial+2:
		return window{}, status.InvalidArgumentf("Sliding window strides field must specify %d dimensions", spatial+2)
	case a.strides[0] != 1 || a.strides[ax.channel()] != 1:
		return window{}, status.InvalidArgumentf("Current implementation does not support strides in the batch and depth dimensions.")
	case slices.Min(ax.pick(a.strides)) <= 0:
		return window{}, status.InvalidArgumentf("Spatial strides should be larger than 0.")
	case len(a.dilations) == 0:
	case len(a.dilations) != spatial+2:
		return window{}, status.InvalidArgumentf("Dilation rates field must specify%ddimensions", spatial+2)
	case a.dilations[0] != 1 || a.dilations[ax.channel()] != 1:
		return window{}, status.InvalidArgumentf("Current implementation does not support dilation rates in the batch and depth dimensions.")
	case slices.Min(ax.pick(a.dilations)) <= 0:
		return window{}, status.InvalidArgumentf("Dilated rates should be larger than 0.")
	}
	w := a.window(spatial)
	return w, w.checkPadding()
}
