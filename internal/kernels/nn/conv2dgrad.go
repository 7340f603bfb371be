package nn

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const inputDoc = "Computes the gradient of a convolution with respect to the input."
	const filterDoc = "Computes the gradient of a convolution with respect to the filter."
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv2DBackpropInput", Doc: inputDoc,
			In: []string{"input_sizes: int32", "filter: T", "out_backprop: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + convTypes}, convAttrs...), Shape: conv2DInputGradShape,
		},
		Kernels: kernel.ByType("T", inputGradTable(sizesOfInputGrad)),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv2DBackpropInputV2", Doc: inputDoc,
			In: []string{"input: T", "filter: T", "out_backprop: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + convTypes}, convAttrs...), Shape: sameAsInput(0, 4),
		},
		Kernels: kernel.ByType("T", inputGradTable(func(ctx *kernel.Context, _ *window) (tensor.Shape, error) {
			return ctx.Input(0).Shape(), nil
		})),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv2DBackpropFilter", Doc: filterDoc,
			In: []string{"input: T", "filter_sizes: int32", "out_backprop: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + floatTypes}, convAttrs...), Shape: filterSizesShape(4),
		},
		Kernels: kernel.ByType("T", filterGradTable(func(ctx *kernel.Context) (tensor.Shape, error) {
			sizes := ctx.Input(1)
			if sizes.Rank() != 1 {
				return nil, status.InvalidArgumentf("Conv2DCustomBackpropFilter: filter_sizes input must be 1-dim, not %d", sizes.Rank())
			}
			return intarg.Shape(intarg.Values(sizes))
		})),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Conv2DBackpropFilterV2", Doc: filterDoc,
			In: []string{"input: T", "filter: T", "out_backprop: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + floatTypes}, convAttrs...), Shape: sameAsInput(1, 4),
		},
		Kernels: kernel.ByType("T", filterGradTable(func(ctx *kernel.Context) (tensor.Shape, error) { return ctx.Input(1).Shape(), nil })),
	})
}

// sameAsInput returns the shape function of operations whose output has the shape of input i, which
// must have the given rank.
func sameAsInput(i, rank int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		s, err := opdef.WithRank(c.In[i], rank)
		c.SetAll(s)
		return err
	}
}

// filterSizesShape returns the shape function of filter gradients. Input 1 holds the shape of the
// filter, which has the given rank.
func filterSizesShape(rank int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		s, err := shapefn.Input(c, 1)
		if err == nil {
			s, err = opdef.WithRank(s, rank)
		}
		c.SetAll(s)
		return err
	}
}

func conv2DInputGradShape(c *opdef.ShapeContext) error {
	a := axesOf(c.Attrs, 2)
	out, err := opdef.WithRank(c.In[2], 4)
	if err != nil {
		return err
	}
	filter, err := opdef.WithRank(c.In[1], 4)
	if err != nil {
		return err
	}
	if _, err := opdef.MergeDims(out.Dim(a.channel()), filter.Dim(3)); err != nil {
		return err
	}
	sizes, err := shapefn.Input(c, 0)
	if err != nil {
		return err
	}
	if !sizes.RankKnown() {
		sizes = tensor.UnknownDims(4)
	}
	batch := out.Dim(0)
	switch sizes.Rank() {
	case 4:
		if _, err := opdef.MergeDims(sizes.Dim(0), batch); err != nil {
			return err
		}
		c.SetAll(tensor.MakePartial(a.shape(batch, a.pick(sizes.Dims()), sizes.Dim(a.channel()))...))
	case 2:
		c.SetAll(tensor.MakePartial(a.shape(batch, sizes.Dims(), filter.Dim(2))...))
	default:
		return status.InvalidArgumentf("Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: %d", sizes.Rank())
	}
	return nil
}

// sizesOfInputGrad returns the shape described by input 0, which holds either the full shape or
// only rows and columns.
func sizesOfInputGrad(ctx *kernel.Context, w *window) (tensor.Shape, error) {
	sizes, filter, out := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if out.Rank() != 4 {
		return nil, status.InvalidArgumentf("input_sizes must be 4-dimensional, got: %d", out.Rank())
	}
	if sizes.Rank() != 1 {
		return nil, status.InvalidArgumentf("Conv2DBackpropInput: input_sizes input must be 1-dim, not %d", sizes.Rank())
	}
	dims := intarg.Values(sizes)
	switch len(dims) {
	case 4:
		return intarg.Shape(dims)
	case 2:
		if dims[0] < 0 || dims[1] < 0 {
			return nil, status.InvalidArgumentf("Conv2DBackpropInput: elements of input_sizes must be >= 0, not %dx%d", dims[0], dims[1])
		}
		if filter.Rank() != 4 {
			return nil, status.InvalidArgumentf("Conv2DBackpropInput: filter must be 4-dimensional")
		}
		return w.shape(out.Shape()[0], dims, filter.Shape()[2]), nil
	}
	return nil, status.InvalidArgumentf("Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: %d", len(dims))
}

type inputSize func(ctx *kernel.Context, w *window) (tensor.Shape, error)

func inputGradTable(size inputSize) kernel.Table {
	return kernel.Table{
		tensor.Float16: conv2DInputGrad(shortEngine[tensor.Float16Elem](), size), tensor.BFloat16: conv2DInputGrad(bfloatEngine(), size),
		tensor.Float32: conv2DInputGrad(floatEngine[float32](), size), tensor.Float64: conv2DInputGrad(floatEngine[float64](), size),
		tensor.Int32: conv2DInputGrad(plainEngine[int32](), size),
	}
}

func conv2DInputGrad[T tensor.Elem](e convEngine[T], size inputSize) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newConvWindow(c.Attrs, status.Unimplemented)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			filter, grad := ctx.Input(1), ctx.Input(2)
			shape, err := size(ctx, &w)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, slices.Clone(shape))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if grad.NumElements() == 0 {
				return zero(out)
			}
			s, err := w.gradSize("Conv2DCustomBackpropInput", shape, filter.Shape(), grad.Shape())
			if err != nil {
				return err
			}
			if d := device.Of(out); d != nil {
				return convOnDevice(d, driver.ConvBackwardData, w.axes, &s, out, filter, grad)
			}
			return mapLast(w.axes, out, grad, func(x, y []T) {
				e.inputGrad(&s, x, y, tensor.Values[T](filter))
			})
		}), nil
	}
}

func filterGradTable(size func(*kernel.Context) (tensor.Shape, error)) kernel.Table {
	return kernel.Table{
		tensor.Float16: conv2DFilterGrad(shortEngine[tensor.Float16Elem](), size), tensor.BFloat16: conv2DFilterGrad(bfloatEngine(), size),
		tensor.Float32: conv2DFilterGrad(floatEngine[float32](), size), tensor.Float64: conv2DFilterGrad(floatEngine[float64](), size),
	}
}

func conv2DFilterGrad[T tensor.Elem](e convEngine[T], size func(*kernel.Context) (tensor.Shape, error)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		w, err := newConvWindow(c.Attrs, status.InvalidArgument)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			in, grad := ctx.Input(0), ctx.Input(2)
			shape, err := size(ctx)
			if err != nil {
				return err
			}
			out, err := ctx.Allocate(0, slices.Clone(shape))
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if in.NumElements() == 0 {
				return zero(out)
			}
			s, err := w.gradSize("Conv2DCustomBackpropFilter", in.Shape(), shape, grad.Shape())
			if err != nil {
				return err
			}
			if d := device.Of(out); d != nil {
				return convOnDevice(d, driver.ConvBackwardFilter, w.axes, &s, in, out, grad)
			}
			return readLast(w.axes, in, grad, func(x, y []T) {
				e.filterGrad(&s, tensor.Values[T](out), x, y)
			})
		}), nil
	}
}
