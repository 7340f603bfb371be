package nn

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	attrs := []string{"mode: {'REFLECT', 'SYMMETRIC'}", "strides: list(int)", samePadding}
	padded := kernel.Table{
		tensor.Float16:  newPaddedConv(shortEngine[tensor.Float16Elem](), func(v tensor.Float16Elem) float64 { return float64(v.Float32()) }, halfOf),
		tensor.BFloat16: newPaddedConv(shortEngine[tensor.BFloat16Elem](), func(v tensor.BFloat16Elem) float64 { return float64(v.Float32()) }, bfloatOf),
		tensor.Float32:  newPaddedConv(floatEngine[float32](), func(v float32) float64 { return float64(v) }, func(v float64) float32 { return float32(v) }),
		tensor.Float64:  newPaddedConv(floatEngine[float64](), func(v float64) float64 { return v }, func(v float64) float64 { return v }),
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "FusedPadConv2D", Doc: "Computes Conv2D of the input padded by MirrorPad.",
			In: []string{"input: T", "paddings: int32", "filter: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: " + floatTypes}, attrs...), Shape: paddedConvShape(false),
		},
		Kernels: kernel.ByType("T", padded),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "FusedResizeAndPadConv2D", Doc: "Computes Conv2D of the input resized by ResizeBilinear and padded by MirrorPad.",
			In: []string{"input: T", "size: int32", "paddings: int32", "filter: T"}, Out: []string{"output: T"},
			Attrs: append([]string{"T: {float16, float32, float64}", "resize_align_corners: bool = false"}, attrs...), Shape: paddedConvShape(true),
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float16: padded[tensor.Float16], tensor.Float32: padded[tensor.Float32], tensor.Float64: padded[tensor.Float64],
		}),
	})
}

func halfOf(v float64) tensor.Float16Elem    { return tensor.Float16Of(float32(v)) }
func bfloatOf(v float64) tensor.BFloat16Elem { return tensor.BFloat16Of(float32(v)) }

func paddedConvShape(resizes bool) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		in, err := opdef.WithRank(c.In[0], 4)
		if err != nil {
			return err
		}
		pads := 1
		if resizes {
			pads = 2
			if _, err := opdef.MergeShapes(c.In[1], shapefn.Of(2)); err != nil {
				return err
			}
			in = shapefn.Replace(shapefn.Replace(in, 1, shapefn.Unknown), 2, shapefn.Unknown)
			if size, ok := shapefn.Ints(c, 1); ok {
				in = shapefn.Replace(shapefn.Replace(in, 1, size[0]), 2, size[1])
			}
		}
		if in, err = padShape(c, pads, in); err != nil {
			return err
		}
		filter, err := opdef.WithRank(c.In[pads+1], 4)
		if err != nil {
			return err
		}
		strides := c.Attrs.Ints("strides")
		if len(strides) != 4 {
			return status.InvalidArgumentf("Operation requires the stride attribute to contain 4 values, but got: %d", len(strides))
		}
		if _, err := opdef.MergeDims(in.Dim(3), filter.Dim(2)); err != nil {
			return err
		}
		w := window{axes: axes{spatial: 2}, padding: c.Attrs.String("padding"), stride: strides[1:3], dilation: []int64{1, 1}}
		return w.setOutput(c, in, filter, filter.Dim(3))
	}
}

// padShape returns the shape of in padded by input i.
func padShape(c *opdef.ShapeContext, i int, in tensor.PartialShape) (tensor.PartialShape, error) {
	pads, err := opdef.WithRank(c.In[i], 2)
	if err != nil {
		return in, err
	}
	if n := pads.Dim(0); n >= 0 {
		if in, err = opdef.WithRank(in, int(n)); err != nil {
			return in, err
		}
	}
	if _, err := opdef.MergeShapes(pads, shapefn.Of(4, 2)); err != nil {
		return in, err
	}
	vals, ok := shapefn.Ints(c, i)
	if !ok {
		return shapefn.Of(shapefn.Unknown, shapefn.Unknown, shapefn.Unknown, shapefn.Unknown), nil
	}
	for d := range 4 {
		if vals[2*d] < 0 || vals[2*d+1] < 0 {
			return in, status.InvalidArgumentf("Paddings must be non-negative")
		}
		in = shapefn.Replace(in, d, shapefn.Add(in.Dim(d), vals[2*d]+vals[2*d+1]))
	}
	return in, nil
}

// paddedConv holds the attributes of a convolution of padded images.
type paddedConv struct {
	window
	resizes, alignCorners bool
	reflects              bool // mode REFLECT: the padding omits the pixels at the border
}

func newPaddedConv[T tensor.Elem](e convEngine[T], widen func(T) float64, narrow func(float64) T) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		strides := c.Attrs.Ints("strides")
		if len(strides) != 4 {
			return nil, status.InvalidArgumentf("Sliding window strides field must specify 4 dimensions")
		}
		if strides[0] != 1 || strides[3] != 1 {
			return nil, status.InvalidArgumentf("Current implementation does not yet support strides in the batch and depth dimensions.")
		}
		p := paddedConv{
			window:  window{axes: axes{spatial: 2}, padding: c.Attrs.String("padding"), stride: strides[1:3], dilation: []int64{1, 1}},
			resizes: len(c.Inputs) == 4, reflects: c.Attrs.String("mode") == "REFLECT",
		}
		if p.resizes {
			p.alignCorners = c.Attrs.Bool("resize_align_corners")
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			rows, cols, err := p.resampling(ctx)
			if err != nil {
				return err
			}
			in, filter := ctx.Input(0), ctx.Input(ctx.NumInputs()-1)
			shape := tensor.Shape{int64(in.Dim(0)), rows.padded(), cols.padded(), int64(in.Dim(3))}
			if filter.Rank() != 4 {
				return status.InvalidArgumentf("filter must be 4-dimensional: %v", filter.Shape())
			}
			if shape[3] != filter.Shape()[2] {
				return status.InvalidArgumentf("input and filter must have the same depth: %d vs %d", shape[3], filter.Shape()[2])
			}
			s, _, err := p.size(shape, filter.Shape())
			if err != nil {
				return err
			}
			if s.Batch*s.OutH*s.OutW*s.OutC == 0 {
				return status.InvalidArgumentf("Output tensor can't be empty")
			}
			out, err := ctx.Allocate(0, p.shape(int64(s.Batch), []int64{int64(s.OutH), int64(s.OutW)}, int64(s.OutC)))
			if err != nil {
				return err
			}
			padded, err := tensor.Alloc(in.DType(), shape)
			if err != nil {
				return err
			}
			defer padded.Release()
			x, z, plane := tensor.Values[T](in), tensor.Values[T](&padded), in.NumElements()/in.Dim(0)
			for ; len(x) > 0; x = x[plane:] {
				z = resample(z, x[:plane], in.Dim(2), in.Dim(3), rows, cols, widen, narrow)
			}
			e.forward(&s, tensor.Values[T](out), tensor.Values[T](&padded), tensor.Values[T](filter))
			return nil
		}), nil
	}
}

// resampling maps one dimension of the padded images to the original ones.
type resampling struct {
	in            int
	size          int64 // after resizing
	scale         float32
	before, after int64 // padding
	edge          int64 // 1 if the padding omits the border pixel
}

func (r *resampling) padded() int64 { return r.before + r.size + r.after }

// at returns the two original lines that line i of the padded images lies between, and the weight
// of the second one.
func (r *resampling) at(i int64) (lo, hi int, part float64) {
	i -= r.before
	if i < 0 {
		i = r.edge - 1 - i
	} else if i >= r.size {
		i = 2*r.size - 1 - r.edge - i
	}
	v := float64(float32(i) * r.scale)
	lo = int(math.Floor(v))
	return min(lo, r.in-1), min(lo+1, r.in-1), v - math.Floor(v)
}

// resampling checks all inputs except the filter and returns the resampling of rows and columns.
func (p *paddedConv) resampling(ctx *kernel.Context) (rows, cols resampling, err error) {
	in := ctx.Input(0)
	if in.NumElements() == 0 {
		return rows, cols, status.InvalidArgumentf("Input tensor can't be empty")
	}
	if in.Rank() != 4 {
		return rows, cols, status.InvalidArgumentf("input must be 4-dimensional%v", in.Shape())
	}
	size := []int64{in.Shape()[1], in.Shape()[2]}
	if p.resizes {
		t := ctx.Input(1)
		switch {
		case t.Rank() != 1:
			return rows, cols, status.InvalidArgumentf("shape_t must be 1-dimensional%v", t.Shape())
		case t.NumElements() != 2:
			return rows, cols, status.InvalidArgumentf("shape_t must have two elements%v", t.Shape())
		}
		size = intarg.Values(t)
		if size[0] <= 0 || size[1] <= 0 {
			return rows, cols, status.InvalidArgumentf("output dimensions must be positive")
		}
	}
	resized := tensor.Shape{in.Shape()[0], size[0], size[1], in.Shape()[3]}
	if err := resized.Check(); err != nil {
		return rows, cols, err
	}
	pads := ctx.Input(ctx.NumInputs() - 2)
	if err := p.checkPads(pads, resized); err != nil {
		return rows, cols, err
	}
	vals := intarg.Values(pads)
	return p.along(in.Dim(1), size[0], vals[2:4]), p.along(in.Dim(2), size[1], vals[4:6]), nil
}

func (p *paddedConv) checkPads(pads *tensor.Tensor, in tensor.Shape) error {
	if pads.Rank() != 2 || pads.Dim(1) != 2 {
		return status.InvalidArgumentf("paddings must be a matrix with 2 columns: %v", pads.Shape())
	}
	if pads.Dim(0) != len(in) {
		return status.InvalidArgumentf("The first dimension of paddings must be the rank of inputs: %d %v %v", len(in), pads.Shape(), in)
	}
	vals := intarg.Values(pads)
	for d, n := range in {
		before, after := vals[2*d], vals[2*d+1]
		switch {
		case before < 0 || after < 0:
			return status.InvalidArgumentf("paddings must be non-negative: %d %d", before, after)
		case p.reflects && max(before, after) >= n:
			return status.InvalidArgumentf("paddings must be less than the dimension size: %d, %d not less than %d", before, after, n)
		case max(before, after) > n:
			return status.InvalidArgumentf("paddings must be no greater than the dimension size: %d, %d greater than %d", before, after, n)
		}
	}
	if vals[0] != 0 || vals[1] != 0 {
		return status.InvalidArgumentf("Fused mirror padding only support spatial padding, not batches: %v", pads)
	}
	if vals[6] != 0 || vals[7] != 0 {
		return status.InvalidArgumentf("Fused mirror padding only support spatial padding, not channels: %v", pads)
	}
	return nil
}

// along returns the resampling of a dimension of in pixels that is resized to size pixels and
// padded by pads.
func (p *paddedConv) along(in int, size int64, pads []int64) resampling {
	r := resampling{in: in, size: size, scale: 1, before: pads[0], after: pads[1]}
	switch {
	case p.alignCorners && size > 1:
		r.scale = float32(in-1) / float32(size-1)
	case p.resizes:
		r.scale = float32(in) / float32(size)
	}
	if p.reflects {
		r.edge = 1
	}
	return r
}

// resample fills the beginning of z with a resampled image of x, whose rows have width pixels, and
// returns the rest of z.
func resample[T any](z, x []T, width, channels int, rows, cols resampling, widen func(T) float64, narrow func(float64) T) []T {
	for y := range rows.padded() {
		top, bottom, part := rows.at(y)
		upper, lower := x[top*width*channels:], x[bottom*width*channels:]
		for column := range cols.padded() {
			left, right, across := cols.at(column)
			left, right = left*channels, right*channels
			if part == 0 && across == 0 {
				z = z[copy(z[:channels], upper[left:]):]
				continue
			}
			between := func(a, b T, part float64) float64 { return widen(a) + (widen(b)-widen(a))*part }
			for c := range channels {
				high := between(upper[left+c], upper[right+c], across)
				low := between(lower[left+c], lower[right+c], across)
				z[c] = narrow(high + (low-high)*part)
			}
			z = z[channels:]
		}
	}
	return z
}
