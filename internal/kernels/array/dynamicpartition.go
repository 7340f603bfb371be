package array

import (
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
	kernel.RegisterNew(opdef.Def{
		Name: "DynamicPartition",
		Doc:  "Partitions data into several tensors. Row i of data is appended to output partitions[i].",
		In:   []string{"data: T", "partitions: int32"}, Out: []string{"outputs: num_partitions * T"},
		Attrs: []string{"num_partitions: int >= 1", "T: type"}, Shape: partitionShape,
	}, newPartition)
}

func partitionShape(c *opdef.ShapeContext) error {
	data, partitions := c.In[0], c.In[1]
	if !partitions.RankKnown() || !data.RankKnown() {
		return nil
	}
	if _, err := opdef.WithRankAtLeast(data, partitions.Rank()); err != nil {
		return err
	}
	for i := range partitions.Rank() {
		if _, err := opdef.MergeDims(data.Dim(i), partitions.Dim(i)); err != nil {
			return err
		}
	}
	c.SetAll(shapefn.Concat(shapefn.Of(shapefn.Unknown), shapefn.From(data, partitions.Rank())))
	return nil
}

func newPartition(c *kernel.Construction) (kernel.Kernel, error) {
	n := c.Attrs.Int("num_partitions")
	return kernel.Func(func(ctx *kernel.Context) error { return partition(ctx, n) }), nil
}

func partition(ctx *kernel.Context, n int) error {
	data, partitions := ctx.Input(0), ctx.Input(1)
	k := partitions.Rank()
	if data.Rank() < k || !data.Shape()[:k].Equal(partitions.Shape()) {
		return status.InvalidArgumentf("data.shape must start with partitions.shape, got data.shape = %v, partitions.shape = %v",
			data.Shape(), partitions.Shape())
	}
	row := data.Shape()[k:]
	counts := membudget.Make[int64](n)
	for i, p := range tensor.Values[int32](partitions) {
		if p < 0 || int(p) >= n {
			return status.InvalidArgumentf("partitions%s = %d is not in [0, %d)", intarg.Position(partitions.Shape(), i), p, n)
		}
		counts[p]++
	}
	outs := membudget.Make[tensor.Tensor](n)
	for p := range outs {
		out, err := ctx.Allocate(p, append(tensor.Shape{counts[p]}, row...))
		if err != nil {
			return err
		}
		outs[p] = *out
	}
	list, err := gatherscatter.NewList(partitions.NumElements())
	defer list.Release()
	if err != nil {
		return err
	}
	next := membudget.Make[int64](n)
	for p := 1; p < n; p++ {
		next[p] = next[p-1] + counts[p-1]
	}
	for i, p := range tensor.Values[int32](partitions) {
		list.Rows[next[p]] = int64(i)
		next[p]++
	}
	layout := gatherscatter.Layout{Outer: 1, Rows: partitions.NumElements(), Width: int(row.NumElements())}
	for p := range outs {
		gatherscatter.Gather(&outs[p], data, gatherscatter.List{Rows: list.Rows[next[p]-counts[p] : next[p]]}, layout)
	}
	return nil
}
