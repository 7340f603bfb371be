package shapefn

import (
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Reduce returns the shape of input 0 after reduction over the axes in input 1. Reduced axes are
// removed, or have size 1 if keep is true.
func Reduce(c *opdef.ShapeContext, keep bool) (Shape, error) {
	if _, err := opdef.WithRankAtMost(c.In[1], 1); err != nil {
		return Shape{}, err
	}
	axes, known := Ints(c, 1)
	rank := c.In[0].Rank()
	if rank < 0 {
		return Shape{}, nil
	}
	dims := c.In[0].Dims()
	if !known {
		if !keep {
			return Shape{}, nil
		}
		for i := range dims {
			dims[i] = Unknown
		}
		return Of(dims...), nil
	}
	const removed = -2
	for _, a := range axes {
		if a < int64(-rank) || a >= int64(rank) {
			return Shape{}, status.InvalidArgumentf("Invalid reduction dimension %d for input with %d dimensions.", a, rank)
		}
		dims[(a+int64(rank))%int64(rank)] = removed
	}
	out := dims[:0]
	for _, d := range dims {
		switch {
		case d != removed:
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return Of(out...), nil
}

// Segments returns the output shape of an operation that reduces input 0 by the segment ids in
// input 1 to the number of segments in input 2. The leading dimensions of input 0 are those of the
// ids.
func Segments(c *opdef.ShapeContext) (Shape, error) {
	if err := CheckRanks(c, 2, 0); err != nil {
		return Shape{}, err
	}
	data, ids := c.In[0], c.In[1]
	if !data.RankKnown() || !ids.RankKnown() {
		return Shape{}, nil
	}
	if _, err := opdef.WithRankAtLeast(data, ids.Rank()); err != nil {
		return Shape{}, err
	}
	for i := range ids.Rank() {
		if _, err := opdef.MergeDims(data.Dim(i), ids.Dim(i)); err != nil {
			return Shape{}, err
		}
	}
	n, err := Dim(c, 2)
	return Concat(Of(n), From(data, ids.Rank())), err
}
