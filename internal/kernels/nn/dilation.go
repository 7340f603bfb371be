package nn

import (
	"context"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"T: " + realTypes, "strides: list(int) >= 4", "rates: list(int) >= 4", samePadding}
	grad := []string{"input: T", "filter: T", "out_backprop: T"}
	for _, op := range []struct {
		name, doc, out string
		in             []string
		shape          opdef.ShapeFn
		kernel         func(*orderedKernels) kernel.New
	}{
		{
			"Dilation2D", "Computes grayscale dilation: the maximum of the sums of input and filter in each window, separately for each channel.", "output",
			grad[:2], dilationShape, func(k *orderedKernels) kernel.New { return k.dilation },
		},
		{
			"Dilation2DBackpropInput", "Computes the gradient of Dilation2D with respect to the input.", "in_backprop", grad, opdef.SameShape,
			func(k *orderedKernels) kernel.New { return k.dilationInput },
		},
		{
			"Dilation2DBackpropFilter", "Computes the gradient of Dilation2D with respect to the filter.", "filter_backprop", grad,
			func(c *opdef.ShapeContext) error { c.SetAll(c.In[1]); return nil },
			func(k *orderedKernels) kernel.New { return k.dilationFilter },
		},
	} {
		kernel.Register(kernel.Op{
			Def:     opdef.Def{Name: op.name, Doc: op.doc, In: op.in, Out: []string{op.out + ": T"}, Attrs: attrs, Shape: op.shape},
			Kernels: kernel.ByType("T", ordered.table(op.kernel)),
		})
	}
}

func dilationShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 4)
	if err != nil {
		return err
	}
	filter, err := opdef.WithRank(c.In[1], 3)
	if err != nil {
		return err
	}
	strides, rates := c.Attrs.Ints("strides"), c.Attrs.Ints("rates")
	if len(strides) != 4 {
		return status.InvalidArgumentf("Dilation2D requires the stride attribute to contain 4 values, but got: %d", len(strides))
	}
	if len(rates) != 4 {
		return status.InvalidArgumentf("Dilation2D requires the rates attribute to contain 4 values, but got: %d", len(rates))
	}
	out := []int64{in.Dim(0), tensor.UnknownDim, tensor.UnknownDim, filter.Dim(2)}
	if min(in.Dim(1), in.Dim(2), filter.Dim(0), filter.Dim(1)) >= 0 {
		if _, err := opdef.MergeDims(in.Dim(3), filter.Dim(2)); err != nil {
			return err
		}
		w := window{axes: axes{spatial: 2}, padding: c.Attrs.String("padding"), stride: strides[1:3], dilation: rates[1:3]}
		for i := range 2 {
			s, err := w.span(i, in.Dim(i+1), filter.Dim(i))
			if err != nil {
				return err
			}
			out[i+1] = int64(s.out)
		}
	}
	c.SetAll(tensor.MakePartial(out...))
	return nil
}

// dilation describes a dilation of an input of known size.
type dilation[T tensor.Elem] struct {
	*order[T]
	batch, channels int
	rows, cols      span
	x, f            []T
	// The filter may be as large as the input, so a dilation ends with its step.
	step context.Context //nolint:containedctx // a dilation is made for one call of a kernel
}

// dilationFunc fills z. dy is the gradient of the output in the gradient operations, and nil
// otherwise.
type dilationFunc[T tensor.Elem] func(d *dilation[T], z, dy []T)

func newDilation[T tensor.Elem](compute dilationFunc[T], o order[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		strides, rates := c.Attrs.Ints("strides"), c.Attrs.Ints("rates")
		switch {
		case len(strides) != 4:
			return nil, status.InvalidArgumentf("Sliding window stride field must specify 4 dimensions")
		case strides[0] != 1 || strides[3] != 1:
			return nil, status.Unimplementedf("Stride is only supported across spatial dimensions.")
		case len(rates) != 4:
			return nil, status.InvalidArgumentf("Input stride (atrous rate) field must specify 4 dimensions")
		case rates[0] != 1 || rates[3] != 1:
			return nil, status.Unimplementedf("Rate is only supported across spatial dimensions.")
		}
		w := window{axes: axes{spatial: 2}, padding: c.Attrs.String("padding"), stride: strides[1:3], dilation: rates[1:3]}
		op := c.Op.Name
		return kernel.Func(func(ctx *kernel.Context) error { return runDilation(ctx, op, &w, &o, compute) }), nil
	}
}

func runDilation[T tensor.Elem](ctx *kernel.Context, op string, w *window, o *order[T], compute dilationFunc[T]) error {
	d, err := newDilationOf(ctx.Input(0), ctx.Input(1), w, o)
	if err != nil {
		return err
	}
	shape := tensor.Shape{int64(d.batch), int64(d.rows.out), int64(d.cols.out), int64(d.channels)}
	var dy []T
	if ctx.NumInputs() > 2 {
		grad := ctx.Input(2)
		if grad.Rank() != 4 {
			return status.InvalidArgumentf("out_backprop must be 4-dimensional%v", grad.Shape())
		}
		if !grad.Shape().Equal(shape) {
			return status.InvalidArgumentf("out_backprop has incompatible size.")
		}
		dy = tensor.Values[T](grad)
		shape = ctx.Input(0).Shape()
		if op == "Dilation2DBackpropFilter" {
			shape = ctx.Input(1).Shape()
		}
	}
	out, err := ctx.AllocateZeros(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	d.step = ctx.Context()
	compute(d, tensor.Values[T](out), dy)
	return d.step.Err()
}

func newDilationOf[T tensor.Elem](in, filter *tensor.Tensor, w *window, o *order[T]) (*dilation[T], error) {
	if in.Rank() != 4 {
		return nil, status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	}
	if filter.Rank() != 3 {
		return nil, status.InvalidArgumentf("filter must be 3-dimensional: %v", filter.Shape())
	}
	if in.Dim(3) != filter.Dim(2) {
		return nil, status.InvalidArgumentf("input and filter must have the same depth: %d vs %d", in.Dim(3), filter.Dim(2))
	}
	d := &dilation[T]{order: o, batch: in.Dim(0), channels: in.Dim(3), x: tensor.Values[T](in), f: tensor.Values[T](filter)}
	var err error
	if d.rows, err = w.span(0, in.Shape()[1], filter.Shape()[0]); err != nil {
		return nil, err
	}
	d.cols, err = w.span(1, in.Shape()[2], filter.Shape()[1])
	return d, err
}

// largest calls visit for every element of the outputs of images lo to hi. visit receives the
// largest sum in the window of the element, and the positions in the input and the filter of the
// first element with that sum. As in TensorFlow, a window in which no sum exceeds the lowest value
// reports the lowest value at the first position, or at -1 if it has no elements. It ends early if
// the step ends.
func (d *dilation[T]) largest(lo, hi int, visit func(out int, sum T, in, tap int)) {
	p := stepctx.Progress{Context: d.step, Each: 8}
	for row := lo * d.rows.out; row < hi*d.rows.out; row++ {
		image, oy := row/d.rows.out, row%d.rows.out
		fy0, fy1, y0 := d.rows.clip(oy)
		for ox := range d.cols.out {
			fx0, fx1, x0 := d.cols.clip(ox)
			if p.Pass((fy1-fy0)*(fx1-fx0)*d.channels) != nil {
				return
			}
			first, firstTap := d.first(image, oy, ox), -d.channels
			if len(d.f) > 0 {
				firstTap = 0
			}
			for c := range d.channels {
				best, in, tap := d.lowest, first+c, firstTap+c
				for fy, y := fy0, y0; fy < fy1; fy, y = fy+1, y+d.rows.dilation {
					for fx, x := fx0, x0; fx < fx1; fx, x = fx+1, x+d.cols.dilation {
						at := ((image*d.rows.in+y)*d.cols.in+x)*d.channels + c
						ft := (fy*d.cols.filter+fx)*d.channels + c
						if sum := d.add(d.x[at], d.f[ft]); d.less(best, sum) {
							best, in, tap = sum, at, ft
						}
					}
				}
				visit((row*d.cols.out+ox)*d.channels+c, best, in, tap)
			}
		}
	}
}

// first returns the index of the first element of the window of an output. It is negative if the
// window begins beyond the end of the image.
func (d *dilation[T]) first(image, oy, ox int) int {
	y, x := max(oy*d.rows.stride-d.rows.before, 0), max(ox*d.cols.stride-d.cols.before, 0)
	if y >= d.rows.in || x >= d.cols.in {
		return -d.channels
	}
	return ((image*d.rows.in+y)*d.cols.in + x) * d.channels
}

func dilationForward[T tensor.Elem](d *dilation[T], z, _ []T) {
	parallel.For(d.batch, 1, func(lo, hi int) {
		d.largest(lo, hi, func(out int, sum T, _, _ int) { z[out] = sum })
	})
}

func dilationInputGrad[T tensor.Elem](d *dilation[T], z, dy []T) {
	parallel.For(d.batch, 1, func(lo, hi int) {
		d.largest(lo, hi, func(out int, _ T, in, _ int) {
			if in >= 0 {
				z[in] = d.add(z[in], dy[out])
			}
		})
	})
}

func dilationFilterGrad[T tensor.Elem](d *dilation[T], z, dy []T) {
	d.largest(0, d.batch, func(out int, _ T, _, tap int) {
		if tap >= 0 {
			z[tap] = d.add(z[tap], dy[out])
		}
	})
}
