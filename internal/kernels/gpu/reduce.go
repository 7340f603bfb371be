package gpu

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/linalg"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for op, name := range map[string]string{"Sum": "sum", "Prod": "prod", "Max": "max", "Min": "min"} {
		registerNew(op, newReduction(name, false), withKernel("T", name))
	}
	registerNew("Mean", newReduction("sum", true), withKernel("T", "sum"))
	registerNew("All", newReduction("all", false))
	registerNew("Any", newReduction("any", false))
	registerNew("EuclideanNorm", newReduction("sumsquares", false), withKernel("T", "sumsquares"))
	for op, name := range map[string]string{"ArgMax": "argmax", "ArgMin": "argmin"} {
		registerNew(op, newArg(name), withKernel("T", name), kernel.OfType("output_type", tensor.Int32, tensor.Int64))
	}
	for op, name := range map[string]string{"Cumsum": "cumsum", "Cumprod": "cumprod"} {
		registerNew(op, newScan(name), withKernel("T", name))
	}
	registerNew("L2Loss", typed(l2Loss), withKernel("T", "sumsquares"))
}

// reduced is a reduction of a tensor: the shape of the result, and the positions of the dimensions
// that are kept and reduced.
type reduced struct {
	out          tensor.Shape
	kept, across []int
	n            int64 // elements that make one
}

// reducedBy returns the reduction of a shape over the axes in a tensor of the host.
func reducedBy(shape tensor.Shape, axes *tensor.Tensor, keep bool) (r reduced, ok bool) {
	if axes.Rank() > 1 {
		return r, false
	}
	gone := make([]bool, len(shape)) //sizedmake:ok dimensions
	for _, a := range intarg.Values(axes) {
		i, in := intarg.Axis(a, len(shape))
		if !in || gone[i] {
			return r, false
		}
		gone[i] = true
	}
	r.n, r.out = 1, tensor.Shape{}
	for i, d := range shape {
		switch {
		case !gone[i]:
			r.kept = append(r.kept, i)
			r.out = append(r.out, d)
			continue
		case keep:
			r.out = append(r.out, 1)
		}
		r.across = append(r.across, i)
		r.n *= d
	}
	return r, true
}

// layout returns x as [a, n, b] with the reduced dimensions in the middle. Where they are not next
// to each other, it is a transposed copy. The caller releases the result.
func (r *reduced) layout(ctx *kernel.Context, x *tensor.Tensor) (moved tensor.Tensor, a, b int64, err error) {
	a, b = 1, 1
	shape := x.Shape()
	var first, last = -1, -1
	for _, d := range r.across {
		if shape[d] != 1 {
			if first < 0 {
				first = d
			}
			last = d
		}
	}
	together := true
	for _, d := range r.kept {
		switch {
		case shape[d] == 1:
		case first < 0 || d < first:
			a *= shape[d]
		case d > last:
			b *= shape[d]
		default:
			together = false
		}
	}
	if together {
		return x.Retain(), a, b, nil
	}
	//sizedmake:ok dimensions
	perm := slices.Concat(r.kept, r.across)
	to := make(tensor.Shape, len(perm))
	for i, d := range perm {
		to[i] = shape[d]
	}
	if moved, err = ctx.Scratch(x.DType(), to); err != nil {
		return moved, 0, 0, err
	}
	strided.Copy(&moved, strided.Of(to), x, strided.Of(shape).Permute(perm))
	return moved, int64(x.NumElements()) / r.n, 1, nil
}

func newReduction(name string, mean bool) func(*kernel.Construction) (compute, error) {
	return func(c *kernel.Construction) (compute, error) {
		keep := c.Attrs.Bool("keep_dims")
		return func(ctx *kernel.Context, d *device.Device) error {
			x := *ctx.Input(0)
			r, ok := reducedBy(x.Shape(), ctx.Input(1), keep)
			if !ok {
				return errDetour
			}
			if r.n == 1 && name != "sumsquares" {
				return ctx.PassInput(0, 0, r.out...)
			}
			out, err := ctx.Allocate(0, r.out)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if r.n == 0 && (x.DType().IsInteger() && mean || x.DType().Size() == 2) {
				return errDetour // of no elements
			}
			moved, a, b, err := r.layout(ctx, &x)
			if err != nil {
				return err
			}
			defer moved.Release()
			count := int64(-1)
			if mean {
				count = r.n
			}
			if err := linalg.Reduce(d, name, out, &moved, a, r.n, b, count); err != nil || name != "sumsquares" {
				return err
			}
			n := int64(out.NumElements())
			return launch(d, "sqrt_"+source.TypeName(out.DType()), n, out, out, n)
		}, nil
	}
}

// sides returns the sizes of a shape before, at and after an axis.
func sides(shape tensor.Shape, axis int) (a, n, b int64) {
	return shape[:axis].NumElements(), shape[axis], shape[axis+1:].NumElements()
}

// axisOf returns the axis in a scalar of the host.
func axisOf(t *tensor.Tensor, rank int) (int, bool) {
	if t.NumElements() != 1 || t.Rank() > 0 {
		return 0, false
	}
	return intarg.Axis(intarg.Scalar(t), rank)
}

func newArg(name string) func(*kernel.Construction) (compute, error) {
	return func(c *kernel.Construction) (compute, error) {
		name := name + "_" + source.TypeName(c.Attrs.Type("T")) + "_" + source.TypeName(c.Attrs.Type("output_type"))
		return func(ctx *kernel.Context, d *device.Device) error {
			x := ctx.Input(0)
			axis, ok := axisOf(ctx.Input(1), x.Rank())
			if !ok || x.Dim(axis) == 0 {
				return errDetour
			}
			a, n, b := sides(x.Shape(), axis)
			out, err := ctx.Allocate(0, slices.Delete(slices.Clone(x.Shape()), axis, axis+1))
			if err != nil || a*b == 0 {
				return err
			}
			if a*b < 4096 {
				return rows(d, name+"_rows", a*b, out, x, a, n, b)
			}
			return launch(d, name+"_cols", a*b, out, x, a, n, b)
		}, nil
	}
}

func newScan(name string) func(*kernel.Construction) (compute, error) {
	return func(c *kernel.Construction) (compute, error) {
		name := name + "_" + source.TypeName(c.Attrs.Type("T"))
		exclusive, reverse := flag(c.Attrs.Bool("exclusive")), flag(c.Attrs.Bool("reverse"))
		return func(ctx *kernel.Context, d *device.Device) error {
			x := ctx.Input(0)
			axis, ok := axisOf(ctx.Input(1), x.Rank())
			if !ok {
				return errDetour
			}
			a, n, b := sides(x.Shape(), axis)
			out, err := ctx.AllocateLike(0, x)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			if a*b < 4096 && n > 64 {
				return rows(d, name+"_rows", a*b, out, x, a, n, b, exclusive, reverse)
			}
			return launch(d, name+"_cols", a*b, out, x, a, n, b, exclusive, reverse)
		}, nil
	}
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// l2Loss computes half the sum of squares.
func l2Loss(suffix string) compute {
	return func(ctx *kernel.Context, d *device.Device) error {
		x := ctx.Input(0)
		out, err := ctx.Allocate(0, tensor.Shape{})
		if err != nil {
			return err
		}
		if x.NumElements() == 0 {
			return d.Fill(out, 0)
		}
		if x.DType().Size() == 2 {
			return errDetour // half the sum may be in range where the sum is not
		}
		// A mean of "two" elements halves the sum.
		return linalg.Reduce(d, "sumsquares", out, x, 1, int64(x.NumElements()), 1, 2)
	}
}
