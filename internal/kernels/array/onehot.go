package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "OneHot",
		Doc: "Returns a one-hot tensor: adds a dimension of size depth at axis, with on_value at each " +
			"index and off_value elsewhere.",
		In:    []string{"indices: TI", "depth: int32", "on_value: T", "off_value: T"},
		Out:   []string{"output: T"},
		Attrs: []string{"axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = int64"},
		Shape: oneHotShape,
	}, newOneHot)
}

func oneHotShape(c *opdef.ShapeContext) error {
	axis := c.Attrs.Int("axis")
	if axis < -1 {
		return status.InvalidArgumentf("axis must be >= -1")
	}
	depth, err := shapefn.Dim(c, 1)
	in := c.In[0]
	if err != nil || !in.RankKnown() {
		return err
	}
	at := axis
	if axis == -1 {
		at = in.Rank()
	}
	at %= in.Rank() + 1
	c.Out[0] = shapefn.Concat(shapefn.Sub(in, 0, at), shapefn.Of(depth), shapefn.From(in, at))
	return nil
}

func newOneHot(c *kernel.Construction) (kernel.Kernel, error) {
	axis := c.Attrs.Int("axis")
	return kernel.Func(func(ctx *kernel.Context) error { return oneHot(ctx, axis) }), nil
}

func oneHot(ctx *kernel.Context, axis int) error {
	indices := ctx.Input(0)
	rank := indices.Rank()
	if axis < -1 || axis > rank {
		return status.InvalidArgumentf("Expected axis to be -1 or between [0, %d).  But received: %d", rank+1, axis)
	}
	for i, name := range []string{"depth", "on_value", "off_value"} {
		if t := ctx.Input(i + 1); t.Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar, but got: %v", name, t.Shape())
		}
	}
	depth := intarg.Scalar(ctx.Input(1))
	if depth < 0 {
		return status.InvalidArgumentf("depth must be non-negative, got: %d", depth)
	}
	if axis == -1 {
		axis = rank
	}
	n := indices.NumElements()
	if depth > 0 && int64(n) > (1<<62)/depth {
		return status.InvalidArgumentf("OneHot result would have shape %v + [%d], which exceeds 2**63 - 1 elements",
			indices.Shape(), depth)
	}
	out, err := ctx.Allocate(0, slices.Insert(slices.Clone(indices.Shape()), axis, depth))
	if err != nil || out.NumElements() == 0 {
		return err
	}
	if d := device.Of(out); d != nil {
		name := "onehot_" + source.SizeName(out.DType().Size()) + "_" + source.TypeName(indices.DType())
		size, inner := int64(out.NumElements()), indices.Shape()[axis:].NumElements()
		return d.LaunchLine(name, size, out, indices, ctx.Input(2), ctx.Input(3), size, depth, inner)
	}
	splat(out, ctx.Input(3))
	list, err := gatherscatter.NewList(n)
	defer list.Release()
	if err != nil {
		return err
	}
	intarg.Read(list.Rows, indices, 0)
	suffix := indices.Shape()[axis:].NumElements()
	if suffix == 1 && setHot(out, ctx.Input(2), list.Rows, int(depth)) {
		return nil
	}
	for p, at := int64(0), 0; at < n; p++ {
		for s := range suffix {
			hot := list.Rows[at]
			list.Rows[at] = -1
			if hot >= 0 && hot < depth {
				list.Rows[at] = (p*depth+hot)*suffix + s
			}
			at++
		}
	}
	gatherscatter.Scatter(elementwise.Assign, out, ctx.Input(2), list, 1)
	return nil
}

// setHot sets one element in each row of depth elements to on. It reports false for types it does
// not support.
func setHot(out, on *tensor.Tensor, list []int64, depth int) bool {
	switch {
	case out.DType() == tensor.String || out.DType() == tensor.Resource || out.DType() == tensor.Variant:
		return false
	case out.DType().Size() == 1:
		setHotWords[uint8](out, on, list, depth)
	case out.DType().Size() == 4:
		setHotWords[uint32](out, on, list, depth)
	case out.DType().Size() == 8:
		setHotWords[uint64](out, on, list, depth)
	default:
		return false
	}
	return true
}

func setHotWords[W uint8 | uint32 | uint64](out, on *tensor.Tensor, list []int64, depth int) {
	z, v := strided.Words[W](out), strided.Words[W](on)[0]
	for i, hot := range list {
		if uint64(hot) < uint64(depth) {
			z[i*depth+int(hot)] = v
		}
	}
}
