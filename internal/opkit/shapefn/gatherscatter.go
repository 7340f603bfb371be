package shapefn

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// GatherNd is the shape function of operations that gather the elements, or slices, of params that
// the index vectors in the last dimension of input 1 select.
func GatherNd(c *opdef.ShapeContext, params Shape) error {
	indices, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	depth := indices.Dim(-1)
	if !params.RankKnown() || depth < 0 {
		return nil
	}
	if depth > int64(params.Rank()) {
		return status.InvalidArgumentf(
			"indices.shape[-1] must be <= params.rank, but saw indices shape: %v and params shape: %v", indices, params)
	}
	c.Out[0] = Concat(Sub(indices, 0, -1), From(params, int(depth)))
	return nil
}

// CheckScatterNd checks the shapes of a scatter by index vectors. updates has the dimensions of
// indices without the last, followed by the dimensions of in that an index vector does not select.
func CheckScatterNd(indices, updates, in Shape) error {
	if Count(in) == 0 && (Count(indices) > 0 || Count(updates) > 0) {
		return status.InvalidArgumentf("Indices and updates specified for empty input")
	}
	if !indices.RankKnown() || !updates.RankKnown() || updates.Rank() == 0 || indices.Dim(-1) < 0 {
		return nil
	}
	outer, depth := indices.Rank()-1, int(indices.Dim(-1))
	lead, updatesLead := Sub(indices, 0, outer), Sub(updates, 0, outer)
	if _, err := opdef.MergeShapes(lead, updatesLead); err != nil {
		return status.InvalidArgumentf("Dimensions [0,%d) of indices[shape=%v] = %v must match dimensions [0,%d) of "+
			"updates[shape=%v] = %v: %w", outer, indices, lead, outer, updates, updatesLead, err)
	}
	if !in.RankKnown() {
		return nil
	}
	rest, updatesRest := From(in, depth), From(updates, outer)
	if _, err := opdef.MergeShapes(rest, updatesRest); err != nil {
		return status.InvalidArgumentf("Dimensions [%d,%d) of input[shape=%v] = %v must match dimensions [%d,%d) of "+
			"updates[shape=%v] = %v: %w", depth, in.Rank(), in, rest, outer, updates.Rank(), updates, updatesRest, err)
	}
	return nil
}
