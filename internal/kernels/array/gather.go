package array

import (
	"slices"

	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Gather", Doc: "Gathers slices of params by indices into its first dimension.",
		In:    []string{"params: Tparams", "indices: Tindices"},
		Out:   []string{"output: Tparams"},
		Attrs: []string{"validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"},
		Shape: func(c *opdef.ShapeContext) error {
			params, err := opdef.WithRankAtLeast(c.In[0], 1)
			c.Out[0] = shapefn.Concat(c.In[1], shapefn.From(params, 1))
			return err
		},
	}, func(ctx *kernel.Context) error { return gather(ctx, 0, 0) })
	kernel.RegisterNew(opdef.Def{
		Name: "GatherV2",
		Doc: "Gathers slices of params by indices into dimension axis. The first batch_dims dimensions " +
			"of params and indices correspond to each other.",
		In:  []string{"params: Tparams", "indices: Tindices", "axis: Taxis"},
		Out: []string{"output: Tparams"},
		Attrs: []string{
			"batch_dims: int = 0",
			"Tparams: type",
			"Tindices: {int16, int32, int64}",
			"Taxis: {int32, int64}",
		},
		Shape: gatherV2Shape,
	}, newGatherV2)
	kernel.RegisterNew(opdef.Def{
		Name: "GatherNd", Doc: "Gathers slices of params by the index vectors in the last dimension of indices.",
		In:    []string{"params: Tparams", "indices: Tindices"},
		Out:   []string{"output: Tparams"},
		Attrs: []string{"Tparams: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"},
		Shape: gatherNdShape,
	}, newGatherNd)
}

func gatherV2Shape(c *opdef.ShapeContext) error {
	params, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 2, 0); err != nil {
		return err
	}
	indices, batch := c.In[1], c.Attrs.Int("batch_dims")
	axis, known := c.ScalarValue(2)
	if !known {
		if params.RankKnown() && indices.RankKnown() {
			c.Out[0] = tensor.UnknownDims(params.Rank() + indices.Rank() - 1 - batch)
		}
		return nil
	}
	least := int(axis) + 1
	if axis < 0 {
		least = int(-axis)
	}
	if _, err := opdef.WithRankAtLeast(params, least); err != nil {
		return err
	}
	if _, err := opdef.WithRankAtLeast(indices, max(batch, -batch)); err != nil {
		return err
	}
	if batch < 0 {
		batch += indices.Rank()
	}
	if _, err := opdef.WithRankAtLeast(params, batch+1); err != nil || !params.RankKnown() || !indices.RankKnown() {
		return err
	}
	at := int(axis)
	if at < 0 {
		at += params.Rank()
	}
	c.Out[0] = shapefn.Concat(shapefn.Sub(params, 0, at), shapefn.From(indices, batch), shapefn.From(params, at+1))
	return nil
}

func newGatherV2(c *kernel.Construction) (kernel.Kernel, error) {
	batch := c.Attrs.Int("batch_dims")
	return kernel.Func(func(ctx *kernel.Context) error {
		axis := ctx.Input(2)
		if axis.Rank() != 0 {
			return status.InvalidArgumentf("axis must be scalar")
		}
		return gather(ctx, intarg.Scalar(axis), batch)
	}), nil
}

func gather(ctx *kernel.Context, axis int64, batch int) error {
	params, indices := ctx.Input(0), ctx.Input(1)
	at, batch, err := gatherAxes(params.Shape(), indices.Shape(), axis, batch)
	if err != nil {
		return err
	}
	shape := slices.Concat(params.Shape()[:at], indices.Shape()[batch:], params.Shape()[at+1:])
	out, err := ctx.Allocate(0, shape)
	if err != nil || out.NumElements() == 0 {
		return err
	}
	limit := params.Dim(at)
	list, bad, err := gatherscatter.Read(indices, limit)
	defer list.Release()
	if err != nil {
		return err
	}
	if bad >= 0 {
		return status.InvalidArgumentf("indices%s = %d is not in [0, %d)", intarg.Position(indices.Shape(), bad), list.Rows[bad], limit)
	}
	gatherscatter.Gather(out, params, list, gatherscatter.Layout{
		Outer: int(params.Shape()[:at].NumElements()), Rows: limit, Width: int(params.Shape()[at+1:].NumElements()),
		Share: int(params.Shape()[batch:at].NumElements()),
	})
	return nil
}

// gatherAxes checks the axis and the number of batch dimensions of a gather and returns both
// counted from the front.
func gatherAxes(params, indices tensor.Shape, axis int64, batch int) (at, batchDims int, err error) {
	if len(params) < 1 {
		return 0, 0, status.InvalidArgumentf("params must be at least 1 dimensional")
	}
	least := axis + 1
	if axis < 0 {
		least = -axis
	}
	if int64(len(params)) < least {
		return 0, 0, status.InvalidArgumentf("Shape must be at least rank %d but is rank %d", least, len(params))
	}
	if axis < 0 {
		axis += int64(len(params))
	}
	if batch < -len(indices) || batch > len(indices) {
		return 0, 0, status.InvalidArgumentf("Expected batch_dims in the range [%d, %d], but got %d", -len(indices), len(indices), batch)
	}
	if batch < 0 {
		batch += len(indices)
	}
	if batch >= len(params) {
		return 0, 0, status.InvalidArgumentf("batch_dims (%d) must be less than rank(params) (%d).", batch, len(params))
	}
	if batch > int(axis) {
		return 0, 0, status.InvalidArgumentf("batch_dims (%d) must be less than or equal to axis (%d).", batch, axis)
	}
	for i := range batch {
		if params[i] != indices[i] {
			return 0, 0, status.InvalidArgumentf("params.shape[%d]: %d should be equal to indices.shape[%d]: %d",
				i, params[i], i, indices[i])
		}
	}
	return int(axis), batch, nil
}

func gatherNdShape(c *opdef.ShapeContext) error { return shapefn.GatherNd(c, c.In[0]) }

func newGatherNd(c *kernel.Construction) (kernel.Kernel, error) {
	node := c.Node
	skip, err := gatherscatter.SkipsBad(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		return gatherscatter.GatherVectors(ctx, ctx.Input(0), ctx.Input(1), node, skip)
	}), nil
}
