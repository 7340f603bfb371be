package array

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, doc := range map[string]string{
		"DynamicStitch":         "Interleaves data into one tensor: row indices[m][i] is data[m][i]. The last of several rows with one index wins.",
		"ParallelDynamicStitch": "Interleaves data into one tensor: row indices[m][i] is data[m][i]. Any of several rows with one index wins.",
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc,
			In: []string{"indices: N * int32", "data: N * T"}, Out: []string{"merged: T"},
			Attrs: []string{"N: int >= 1", "T: type"}, Shape: stitchShape,
		}, newStitch)
	}
}

// stitchShape infers the number of rows from the largest index, if all indices are known.
func stitchShape(c *opdef.ShapeContext) error {
	n := c.Attrs.Int("N")
	largest, known := int64(-1), true
	var row shapefn.Shape
	for i := range n {
		indices, data := c.In[i], c.In[n+i]
		if v, ok := shapefn.Ints(c, i); ok {
			for _, x := range v {
				largest = max(largest, x)
			}
		} else {
			known = false
		}
		if !indices.RankKnown() || !data.RankKnown() {
			continue
		}
		if data.Rank() < indices.Rank() || !shapefn.Sub(data, 0, indices.Rank()).Compatible(indices) {
			return status.InvalidArgumentf("Shape of data[%d] %v must start with shape of indices[%d] %v", i, data, i, indices)
		}
		var err error
		if row, err = opdef.MergeShapes(row, shapefn.From(data, indices.Rank())); err != nil {
			return err
		}
	}
	size := shapefn.Unknown
	if known {
		size = largest + 1
	}
	c.Out[0] = shapefn.Concat(shapefn.Of(size), row)
	return nil
}

func newStitch(c *kernel.Construction) (kernel.Kernel, error) {
	n := c.Attrs.Int("N")
	return kernel.Func(func(ctx *kernel.Context) error { return stitch(ctx, n) }), nil
}

func stitch(ctx *kernel.Context, n int) error {
	first := ctx.Input(n)
	row := first.Shape()[min(ctx.Input(0).Rank(), first.Rank()):]
	height := int64(0)
	for i := range n {
		indices, data := ctx.Input(i), ctx.Input(n+i)
		k := indices.Rank()
		if data.Rank() < k || !data.Shape()[:k].Equal(indices.Shape()) {
			return status.InvalidArgumentf("data[%d].shape = %v does not start with indices[%d].shape = %v", i, data.Shape(), i, indices.Shape())
		}
		if !data.Shape()[k:].Equal(row) {
			return status.InvalidArgumentf("Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %v, data[%d].shape = %v, "+
				"indices[0].shape = %v, indices[%d].shape = %v", ctx.Input(0).Rank(), i, k, first.Shape(), i, data.Shape(),
				ctx.Input(0).Shape(), i, indices.Shape())
		}
		for _, x := range tensor.Values[int32](indices) {
			if x < 0 {
				return status.InvalidArgumentf("indices[%d] is out of range: %d is negative", i, x)
			}
			height = max(height, int64(x)+1)
		}
	}
	if height > math.MaxInt32 { // TensorFlow's limit
		return status.InvalidArgumentf("Expected a non-negative size, got %d", math.MinInt32)
	}
	out, err := ctx.AllocateZeros(0, append(tensor.Shape{height}, row...))
	if err != nil {
		return err
	}
	size := int(row.NumElements())
	for i := range n {
		list, _, err := gatherscatter.Read(ctx.Input(i), out.Dim(0))
		if err == nil {
			gatherscatter.Scatter(elementwise.Assign, out, ctx.Input(n+i), list, size)
		}
		list.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
