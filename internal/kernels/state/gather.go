package state

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
	kernel.RegisterNew(opdef.Def{
		Name: "ResourceGather", Doc: "Gathers slices of a variable along the first dimension after batch_dims.",
		In:  []string{"resource: resource", "indices: Tindices"},
		Out: []string{"output: dtype"},
		Attrs: []string{
			"batch_dims: int = 0",
			"validate_indices: bool = true",
			"dtype: type",
			"Tindices: {int32, int64}",
		},
		Stateful: true,
		Shape:    gatherShape,
	}, newGather)
	kernel.RegisterNew(opdef.Def{
		Name: "ResourceGatherNd", Doc: "Gathers slices of a variable at the index vectors in the last dimension of indices.",
		In:       []string{"resource: resource", "indices: Tindices"},
		Out:      []string{"output: dtype"},
		Attrs:    []string{"dtype: type", "Tindices: {int32, int64}"},
		Stateful: true,
		Shape:    gatherNdShape,
	}, newGatherNd)
}

func gatherShape(c *opdef.ShapeContext) error {
	params, err := elemShape(c.InHandles[0], c.Attrs.Type("dtype"))
	if err != nil {
		return err
	}
	batch := c.Attrs.Int("batch_dims")
	if batch < 0 {
		return status.InvalidArgumentf("batch_dims is negative (%d)", batch)
	}
	if _, err := opdef.WithRankAtLeast(params, batch+1); err != nil {
		return err
	}
	indices, err := opdef.WithRankAtLeast(c.In[1], batch)
	if err == nil {
		c.Out[0] = shapefn.Concat(shapefn.Sub(params, 0, batch), shapefn.From(indices, batch), shapefn.From(params, batch+1))
	}
	return err
}

func newGather(c *kernel.Construction) (kernel.Kernel, error) {
	batch := c.Attrs.Int("batch_dims")
	if batch < 0 {
		return nil, status.InvalidArgumentf("batch_dims is negative (%d)", batch)
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		params, err := loadParams(ctx)
		if err != nil {
			return err
		}
		defer params.Release()
		indices := ctx.Input(1)
		if params.Rank() < 1 {
			return status.InvalidArgumentf("params must be at least 1 dimensional")
		}
		if params.Rank() < batch || params.Rank() == batch || indices.Rank() < batch {
			return status.InvalidArgumentf("params must have at least %d (batch_dims) dimensions but it has shape %v", batch, params.Shape())
		}
		if !indices.Shape()[:batch].Equal(params.Shape()[:batch]) {
			return status.InvalidArgumentf("params.shape[:%d] = %v should be equal to indices.shape[:%d] = %v",
				batch, params.Shape()[:batch], batch, indices.Shape()[:batch])
		}
		shape := slices.Concat(params.Shape()[:batch], indices.Shape()[batch:], params.Shape()[batch+1:])
		out, err := ctx.Allocate(0, shape)
		if err != nil || out.NumElements() == 0 {
			return err
		}
		limit := params.Dim(batch)
		list, bad, err := gatherscatter.Read(indices, limit)
		defer list.Release()
		if err != nil {
			return err
		}
		if bad >= 0 {
			return status.InvalidArgumentf("indices%s = %d is not in [0, %d)", intarg.Position(indices.Shape(), bad), list.Rows[bad], limit)
		}
		gatherscatter.Gather(out, &params, list, gatherscatter.Layout{
			Outer: int(params.Shape()[:batch].NumElements()), Rows: limit,
			Width: int(params.Shape()[batch+1:].NumElements()), Share: 1,
		})
		return nil
	}), nil
}

// loadParams returns the value of the variable that is input 0, after checking its type.
func loadParams(ctx *kernel.Context) (tensor.Tensor, error) {
	v, err := lookup(ctx, 0)
	if err != nil {
		return tensor.Tensor{}, err
	}
	params := v.Load()
	switch {
	case !params.Initialized():
		return params, status.FailedPreconditionf("Attempting to use uninitialized value")
	case params.DType() != ctx.OutputType(0):
		defer params.Release()
		return tensor.Tensor{}, wrongType("Trying to read variable with wrong dtype.", ctx.OutputType(0), params.DType())
	}
	return params, nil
}

func gatherNdShape(c *opdef.ShapeContext) error {
	params, err := elemShape(c.InHandles[0], c.Attrs.Type("dtype"))
	if err != nil {
		return err
	}
	return shapefn.GatherNd(c, params)
}

func newGatherNd(c *kernel.Construction) (kernel.Kernel, error) {
	node := c.Node
	return kernel.Func(func(ctx *kernel.Context) error {
		params, err := loadParams(ctx)
		if err != nil {
			return err
		}
		defer params.Release()
		return gatherscatter.GatherVectors(ctx, &params, ctx.Input(1), node, false)
	}), nil
}
