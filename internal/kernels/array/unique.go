package array

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
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
		Name: "Unique",
		Doc: "Returns the distinct elements of a vector in order of appearance and, for each element, " +
			"its index among them.",
		In:    []string{"x: T"},
		Out:   []string{"y: T", "idx: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	kernel.RegisterFunc(opdef.Def{
		Name: "UniqueV2",
		Doc: "Returns the distinct slices along an axis in order of appearance and, for each slice, its " +
			"index among them.",
		In:    []string{"x: T", "axis: Taxis"},
		Out:   []string{"y: T", "idx: out_idx"},
		Attrs: []string{"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	kernel.RegisterFunc(opdef.Def{
		Name: "UniqueWithCounts",
		Doc: "Returns the distinct elements of a vector, the index of each element among them, and the " +
			"count of each.",
		In:    []string{"x: T"},
		Out:   []string{"y: T", "idx: out_idx", "count: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	kernel.RegisterFunc(opdef.Def{
		Name: "UniqueWithCountsV2",
		Doc: "Returns the distinct slices along an axis, the index of each slice among them, and the " +
			"count of each.",
		In:    []string{"x: T", "axis: Taxis"},
		Out:   []string{"y: T", "idx: out_idx", "count: out_idx"},
		Attrs: []string{"T: type", "Taxis: {int32, int64} = int64", "out_idx: {int32, int64} = int32"},
		Shape: uniqueShape,
	}, unique)
	kernel.RegisterFunc(opdef.Def{
		Name: "ListDiff", Doc: "Returns the elements of x that are not in y, and their indices.",
		In:    []string{"x: T", "y: T"},
		Out:   []string{"out: T", "idx: out_idx"},
		Attrs: []string{"T: type", "out_idx: {int32, int64} = int32"},
		Shape: func(c *opdef.ShapeContext) error {
			c.SetAll(shapefn.Of(shapefn.Unknown))
			return shapefn.CheckRanks(c, 0, 1, 1)
		},
	}, listDiff)
}

func uniqueShape(c *opdef.ShapeContext) error {
	in := c.In[0]
	vector := shapefn.Of(shapefn.Unknown)
	if len(c.Out) > 2 {
		c.Out[2] = vector
	}
	if len(c.In) == 1 {
		c.Out[0], c.Out[1] = vector, in
		if len(c.Out) > 2 {
			return nil
		}
		_, err := opdef.WithRank(in, 1)
		return err
	}
	if in.RankKnown() {
		c.Out[0] = tensor.UnknownDims(in.Rank())
	}
	c.Out[1] = vector
	axes, known := shapefn.Ints(c, 1)
	if !known || !in.RankKnown() {
		return nil
	}
	if c.In[1].Rank() != 1 {
		return status.InvalidArgumentf("axis expects a 1D vector.")
	}
	switch len(axes) {
	case 0:
		if in.Rank() != 1 {
			return status.InvalidArgumentf("x expects a 1D vector.")
		}
		c.Out[1] = in
	case 1:
		axis, ok := intarg.Axis(axes[0], in.Rank())
		if !ok {
			return status.InvalidArgumentf("axis expects to be in the range [%d, %d)", -in.Rank(), in.Rank())
		}
		c.Out[1] = shapefn.Of(in.Dim(axis))
	default:
		return status.InvalidArgumentf("axis does not support input tensors larger than 1 elements.")
	}
	return nil
}

func unique(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.NumElements() > math.MaxInt32 {
		return status.InvalidArgumentf("unique does not support input tensors larger than %d elements", math.MaxInt32)
	}
	axis, err := uniqueAxis(ctx)
	if err != nil {
		return err
	}
	outer, n, inner := int(in.Shape()[:axis].NumElements()), in.Dim(axis), int(in.Shape()[axis+1:].NumElements())
	class, firsts, err := classes(ctx.Context(), in, outer, n, inner)
	if err != nil {
		return err
	}
	shape := slices.Clone(in.Shape())
	shape[axis] = int64(len(firsts))
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	gatherscatter.Gather(out, in, gatherscatter.List{Rows: firsts}, gatherscatter.Layout{Outer: outer, Rows: n, Width: inner})
	if err := setVector(ctx, 1, class); err != nil || ctx.NumOutputs() < 3 {
		return err
	}
	counts := membudget.Make[int64](len(firsts))
	for _, k := range class {
		counts[k]++
	}
	return setVector(ctx, 2, counts)
}

func uniqueAxis(ctx *kernel.Context) (int, error) {
	in := ctx.Input(0)
	if ctx.NumInputs() > 1 {
		axes := ctx.Input(1)
		if axes.Rank() != 1 {
			return 0, status.InvalidArgumentf("axis expects a 1D vector.")
		}
		if axes.NumElements() > 1 {
			return 0, status.InvalidArgumentf("axis does not support input tensors larger than 1 elements")
		}
		if axes.NumElements() == 1 {
			axis, ok := intarg.Axis(intarg.Scalar(axes), in.Rank())
			if !ok {
				return 0, status.InvalidArgumentf("axis has to be between [0, %d)", in.Rank())
			}
			return axis, nil
		}
	}
	if in.Rank() != 1 {
		return 0, status.InvalidArgumentf("unique expects a 1D vector.")
	}
	return 0, nil
}

// classes numbers the distinct slices of a tensor in order of appearance. It returns the number of
// each slice and the first slice with each number.
func classes(ctx context.Context, in *tensor.Tensor, outer, n, inner int) (class, firsts []int64, err error) {
	elem, err := identities(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if outer*inner == 1 {
		for i, k := range elem {
			if k == int64(len(firsts)) {
				firsts = membudget.Append(firsts, int64(i))
			}
		}
		return elem, firsts, nil
	}
	class = membudget.Make[int64](n)
	known := map[string]int64{}
	var meter membudget.Meter
	key := membudget.MakeCap[byte](4 * outer * inner)
	for i := range n {
		key = key[:0]
		for o := range outer {
			for _, k := range elem[(o*n+i)*inner:][:inner] {
				key = binary.LittleEndian.AppendUint32(key, uint32(k))
			}
		}
		k, ok := known[string(key)]
		if !ok {
			k = int64(len(known))
			meter.MustTakeEntry(len(key))
			known[string(key)], firsts = k, membudget.Append(firsts, int64(i))
		}
		class[i] = k
	}
	return class, firsts, nil
}

func listDiff(ctx *kernel.Context) error {
	x, y := ctx.Input(0), ctx.Input(1)
	if x.Rank() != 1 {
		return status.InvalidArgumentf("x should be a 1D vector.")
	}
	if y.Rank() != 1 {
		return status.InvalidArgumentf("y should be a 1D vector.")
	}
	for i, name := range []string{"x", "y"} {
		if ctx.Input(i).NumElements() >= math.MaxInt32 {
			return status.InvalidArgumentf("%s too large for int32 indexing", name)
		}
	}
	table := identityTable(x.DType())
	if table == nil {
		return status.InvalidArgumentf("elements of type %v cannot be compared", x.DType())
	}
	if _, err := table.number(ctx.Context(), y); err != nil {
		return err
	}
	found, err := table.find(ctx.Context(), x)
	if err != nil {
		return err
	}
	var keep []int64
	for i, known := range found {
		if !known {
			keep = membudget.Append(keep, int64(i))
		}
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(len(keep))})
	if err != nil {
		return err
	}
	gatherscatter.Gather(out, x, gatherscatter.List{Rows: keep}, gatherscatter.Layout{Outer: 1, Rows: x.NumElements(), Width: 1})
	return setVector(ctx, 1, keep)
}
