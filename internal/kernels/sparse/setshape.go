package sparse

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func denseDenseShape(c *opdef.ShapeContext) error {
	a, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	b := c.In[1]
	if a.RankKnown() {
		if b, err = opdef.WithRank(b, a.Rank()); err != nil {
			return err
		}
		if _, err = opdef.MergeShapes(shapefn.Sub(a, 0, -1), shapefn.Sub(b, 0, -1)); err != nil {
			return err
		}
		copy(c.Out, unknownCOO(int64(a.Rank())))
		return nil
	}
	if b, err = opdef.WithRankAtLeast(b, 2); err != nil {
		return err
	}
	copy(c.Out, unknownCOO(int64(b.Rank())))
	return nil
}

func denseSparseShape(c *opdef.ShapeContext) error {
	rank, err := sparseRank(c, 1)
	if err != nil {
		return err
	}
	set1, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	if set1.RankKnown() {
		if err := shapefn.CheckDim(rank, int64(set1.Rank())); err != nil {
			return err
		}
		rank = int64(set1.Rank())
	}
	copy(c.Out, unknownCOO(rank))
	return nil
}

func sparseSparseShape(c *opdef.ShapeContext) error {
	rank, err := sparseRank(c, 0)
	if err != nil {
		return err
	}
	second, err := sparseRank(c, 3)
	if err != nil {
		return err
	}
	for i, r := range []int64{rank, second} {
		if r == shapefn.Unknown {
			continue
		}
		if r < 2 {
			return status.InvalidArgumentf("Input %d, expected rank >= 2, got %d.", i, r)
		}
		if i == 0 {
			if err := shapefn.CheckDim(second, r); err != nil {
				return err
			}
		}
		rank = r
		break
	}
	copy(c.Out, unknownCOO(rank))
	return nil
}

// sparseRank checks the shapes of a sparse tensor's components, inputs first to first+2, and
// returns its rank.
func sparseRank(c *opdef.ShapeContext, first int) (int64, error) {
	if err := shapefn.CheckRanks(c, first, 2, 1, 1); err != nil {
		return 0, err
	}
	indices, values, shape := c.In[first], c.In[first+1], c.In[first+2]
	if n, m := indices.Dim(0), values.Dim(0); n >= 0 && m >= 0 && n != m {
		return 0, status.InvalidArgumentf("Number of elements in index (%d) and values (%d) do not match.", n, m)
	}
	if r, s := indices.Dim(1), shape.Dim(0); r >= 0 && s >= 0 && r != s {
		return 0, status.InvalidArgumentf("Index rank (%d) and shape rank (%d) do not match.", r, s)
	}
	return shape.Dim(0), nil
}
