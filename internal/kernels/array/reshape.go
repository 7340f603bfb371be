package array

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Reshape", Doc: "Reshapes tensor to shape. One size may be -1 and is inferred.",
		In:    []string{"tensor: T", "shape: Tshape"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tshape: {int32, int64} = int32"},
		Shape: reshapeShape,
	}, reshape)
	kernel.RegisterFunc(opdef.Def{
		Name:  "ExpandDims",
		Doc:   "Inserts a dimension of size 1 at index dim, which counts from the end if negative.",
		In:    []string{"input: T", "dim: Tdim"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "Tdim: {int32, int64} = int32"},
		Shape: expandDimsShape,
	}, expandDims)
	kernel.RegisterNew(opdef.Def{
		Name: "Squeeze", Doc: "Removes the given dimensions of size 1, or all dimensions of size 1.",
		In:    []string{"input: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: type", "squeeze_dims: list(int) >= 0 = []"},
		Shape: squeezeShape,
	}, newSqueeze)
}

func reshapeShape(c *opdef.ShapeContext) error {
	out, err := shapefn.Input(c, 1)
	if err != nil {
		return err
	}
	in := c.In[0]
	c.Out[0] = out
	if !out.RankKnown() || !in.RankKnown() {
		return nil
	}
	inKnown, inHole, inMany := knownElements(in)
	outKnown, outHole, outMany := knownElements(out)
	switch {
	case inMany || outMany:
	case inHole < 0 && outHole < 0 && inKnown != outKnown:
		return status.InvalidArgumentf("Cannot reshape a tensor with %d elements to shape %v (%d elements)",
			inKnown, out, outKnown)
	case inHole < 0 && outHole >= 0 && outKnown > 0:
		d, err := shapefn.Divide(inKnown, outKnown)
		if err != nil {
			return err
		}
		c.Out[0] = shapefn.Replace(out, outHole, d)
	case inHole >= 0 && outHole < 0 && inKnown != 0:
		_, err := shapefn.Divide(outKnown, inKnown)
		return err
	}
	return nil
}

// knownElements returns the product of the known dimensions and the index of the unknown one, or
// -1. many reports whether there are several.
func knownElements(s shapefn.Shape) (n int64, hole int, many bool) {
	n, hole = 1, -1
	if c := shapefn.Count(s); c >= 0 {
		return c, -1, false
	}
	for i, d := range s.Dims() {
		switch {
		case d >= 0:
			n *= d
		case hole >= 0:
			return n, hole, true
		default:
			hole = i
		}
	}
	return n, hole, false
}

func reshape(ctx *kernel.Context) error {
	in, sizes := ctx.Input(0), ctx.Input(1)
	if sizes.Rank() > 1 || sizes.Rank() == 0 && sizes.NumElements() != 1 {
		return status.InvalidArgumentf("sizes input must be 1-D, not %v", sizes.Shape())
	}
	if sizes.NumElements() >= tensor.MaxRank {
		return status.InvalidArgumentf("too many dimensions: must be < %d, but received %d", tensor.MaxRank, sizes.NumElements())
	}
	dims := membudget.Make[int64](sizes.NumElements())
	intarg.Read(dims, sizes, 0)
	shape, err := inferSizes(dims, in.Shape())
	if err != nil {
		return err
	}
	return ctx.PassInput(0, 0, shape...)
}

// inferSizes checks the requested sizes of a tensor of shape in and replaces -1. If zeros are
// requested, zeros of in are ignored to infer the size for -1.
func inferSizes(dims []int64, in tensor.Shape) ([]int64, error) {
	product, hole, zero := int64(1), -1, false
	for i, d := range dims {
		switch {
		case d == -1 && hole >= 0:
			return nil, status.InvalidArgumentf("Only one input size may be -1, not both %d and %d", hole, i)
		case d == -1:
			hole = i
		case d < 0:
			return nil, status.InvalidArgumentf("Size %d must be non-negative, not %d", i, d)
		case d == 0:
			zero = true
		case product > (1<<62)/d:
			return nil, status.InvalidArgumentf("Shape [%s] has too many elements", join(dims))
		default:
			product *= d
		}
	}
	if hole >= 0 {
		n, skipped := int64(1), false
		for _, d := range in {
			if d > 0 || !zero {
				n *= d
			} else {
				skipped = true
			}
		}
		if n%product != 0 && !skipped {
			return nil, status.InvalidArgumentf(
				"Input to reshape is a tensor with %d values, but the requested shape requires a multiple of %d", n, product)
		}
		dims[hole] = n / product
	}
	n, total := in.NumElements(), tensor.Shape(dims).NumElements()
	if total != n {
		return nil, status.InvalidArgumentf(
			"Input to reshape is a tensor with %d values, but the requested shape has %d", n, total)
	}
	return dims, nil
}

// join formats the sizes of a shape. More values than a shape can have are shortened.
func join(dims []int64) string {
	if len(dims) > tensor.MaxRank {
		return summary(dims)
	}
	parts := membudget.Make[string](len(dims))
	for i, d := range dims {
		parts[i] = strconv.FormatInt(d, 10)
	}
	//sizedmake:ok the elements of a shape
	return strings.Join(parts, ",")
}

func expandDimsShape(c *opdef.ShapeContext) error {
	t := c.Value(1)
	if t != nil && t.NumElements() != 1 {
		return status.InvalidArgumentf("'dim' input must be a tensor with a single value")
	}
	in := c.In[0]
	if t == nil || !in.RankKnown() {
		return nil
	}
	dim, _ := c.ScalarValue(1)
	if r := int64(in.Rank()); dim < -r-1 || dim > r {
		return status.InvalidArgumentf("dim %d not in the interval [%d, %d].", dim, -r-1, r)
	} else if dim < 0 {
		dim += r + 1
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(in, 0, int(dim)), shapefn.Of(1), shapefn.From(in, int(dim)))
	return nil
}

func expandDims(ctx *kernel.Context) error {
	in, dim := ctx.Input(0), ctx.Input(1)
	if in.DType() == tensor.Variant {
		return status.InvalidArgumentf("ExpandDims on Variant not supported")
	}
	if dim.NumElements() != 1 {
		return status.InvalidArgumentf("'dim' must be a tensor with a single value")
	}
	d, rank := intarg.Scalar(dim), int64(in.Rank())
	if d < -1-rank || d > rank {
		return status.InvalidArgumentf("Tried to expand dim index %d for tensor with %d dimensions.", d, rank)
	}
	if d < 0 {
		d += rank + 1
	}
	shape := membudget.MakeCap[int64](rank + 1)
	shape = append(append(append(shape, in.Shape()[:d]...), 1), in.Shape()[d:]...)
	return ctx.PassInput(0, 0, shape...)
}

func squeezeShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	if !in.RankKnown() {
		return nil
	}
	drop := map[int]bool{}
	for i, d := range c.Attrs.Ints("squeeze_dims") {
		axis, ok := intarg.Axis(d, in.Rank())
		if !ok {
			return status.InvalidArgumentf("squeeze_dims[%d] not in [%d,%d).", i, -in.Rank(), in.Rank())
		}
		drop[axis] = true
	}
	out := []int64{}
	for i, d := range in.Dims() {
		switch {
		case d < 0 && len(drop) == 0:
			return nil // unknown whether the dimension is removed
		case drop[i] && d > 1 || drop[i] && d == 0:
			return status.InvalidArgumentf("Can not squeeze dim[%d], expected a dimension of 1, got %d", i, d)
		case !drop[i] && (d != 1 || len(drop) > 0):
			out = append(out, d)
		}
	}
	c.Out[0] = shapefn.Of(out...)
	return nil
}

func newSqueeze(c *kernel.Construction) (kernel.Kernel, error) {
	dims := c.Attrs.Ints("squeeze_dims")
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		if in.DType() == tensor.Variant {
			return status.InvalidArgumentf("Squeeze on Variant not supported")
		}
		shape, err := squeeze(in.Shape(), dims)
		if err != nil {
			return err
		}
		return ctx.PassInput(0, 0, shape...)
	}), nil
}

func squeeze(shape tensor.Shape, dims []int64) (tensor.Shape, error) {
	drop := membudget.Make[bool](len(shape))
	for _, d := range dims {
		axis, ok := intarg.Axis(d, len(shape))
		if !ok {
			return nil, status.InvalidArgumentf("Tried to squeeze dim index %d for tensor with %d dimensions.", d, len(shape))
		}
		drop[axis] = true
	}
	out := make(tensor.Shape, 0, len(shape))
	for i, d := range shape {
		switch {
		case drop[i] && d != 1:
			return nil, status.InvalidArgumentf("Can not squeeze dim[%d], expected a dimension of 1, got %d", i, d)
		case !drop[i] && (d != 1 || len(dims) > 0):
			out = append(out, d)
		}
	}
	return out, nil
}
