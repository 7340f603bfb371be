package array

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func matrixDiagV1Shape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err == nil && in.RankKnown() {
		c.Out[0] = shapefn.Concat(in, shapefn.Of(in.Dim(-1)))
	}
	return err
}

func matrixDiagPartV1Shape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err == nil && in.RankKnown() {
		c.Out[0] = shapefn.Concat(shapefn.Sub(in, 0, -2), shapefn.Of(shapefn.Min(in.Dim(-2), in.Dim(-1))))
	}
	return err
}

func matrixSetDiagV1Shape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	diagonal, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	if in.RankKnown() {
		if diagonal, err = opdef.WithRank(diagonal, in.Rank()-1); err != nil {
			return err
		}
	}
	if _, err := opdef.MergeDims(shapefn.Min(in.Dim(-2), in.Dim(-1)), diagonal.Dim(-1)); err != nil {
		return err
	}
	c.Out[0] = in
	if diagonal.RankKnown() && !shapefn.Full(in) {
		c.Out[0], err = opdef.MergeShapes(in, shapefn.Concat(shapefn.Sub(diagonal, 0, -1), tensor.UnknownDims(2)))
	}
	return err
}

// diagonalRange returns the value of input k, if it is known.
func diagonalRange(c *opdef.ShapeContext, input int) (b band, known bool, err error) {
	k, err := opdef.WithRankAtMost(c.In[input], 1)
	if err != nil {
		return b, false, err
	}
	vals, known := shapefn.Ints(c, input)
	if !known || !shapefn.Full(k) {
		return b, false, nil
	}
	switch len(vals) {
	case 1:
		b.lower, b.upper = int(vals[0]), int(vals[0])
	case 2:
		b.lower, b.upper = int(vals[0]), int(vals[1])
	default:
		return b, false, status.InvalidArgumentf("diag_index must be a vector with one or two elements. It has %d elements.", len(vals))
	}
	if b.lower > b.upper {
		return b, false, status.InvalidArgumentf("lower_diag_index is greater than upper_diag_index")
	}
	return b, true, nil
}

// bounded checks the range against the size of the given matrices, if it is known.
func (b *band) bounded(in shapefn.Shape) (sizeKnown bool, err error) {
	rows, cols := in.Dim(-2), in.Dim(-1)
	if rows < 0 || cols < 0 {
		return false, nil
	}
	b.rows, b.cols = int(rows), int(cols)
	out := func(d int) bool { return d != 0 && (-b.rows >= d || d >= b.cols) }
	if out(b.lower) {
		return true, status.InvalidArgumentf("lower_diag_index is out of bound.")
	}
	if out(b.upper) {
		return true, status.InvalidArgumentf("upper_diag_index is out of bound.")
	}
	return true, nil
}

func matrixDiagPartShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 2, 0); err != nil {
		return err
	}
	b, known, err := diagonalRange(c, 1)
	if err != nil || !known || !in.RankKnown() {
		return err
	}
	sizeKnown, err := b.bounded(in)
	if err != nil {
		return err
	}
	longest := shapefn.Unknown
	if sizeKnown {
		longest = int64(b.longest())
	}
	c.Out[0] = shapefn.Sub(in, 0, -2)
	if b.count() > 1 {
		c.Out[0] = shapefn.Concat(c.Out[0], shapefn.Of(int64(b.count())))
	}
	c.Out[0] = shapefn.Concat(c.Out[0], shapefn.Of(longest))
	return nil
}

func matrixDiagShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 1)
	if err != nil {
		return err
	}
	if err := shapefn.CheckRanks(c, 2, 0, 0, 0); err != nil {
		return err
	}
	b, known, err := diagonalRange(c, 1)
	if err != nil || !known || !in.RankKnown() {
		return err
	}
	lead := shapefn.Sub(in, 0, -1)
	if b.count() > 1 {
		if n := in.Dim(-2); n >= 0 && n != int64(b.count()) {
			return status.InvalidArgumentf("The number of rows of `diagonal` doesn't match the number of diagonals implied from "+
				"`d_lower` and `d_upper`.\nnum_diags = %d, d_lower = %d, d_upper = %d %d %d", n, b.lower, b.upper, in.Rank(), in.Dim(-1))
		}
		lead = shapefn.Sub(in, 0, -2)
	}
	c.Out[0] = shapefn.Concat(lead, tensor.UnknownDims(2))
	rows, rowsKnown := c.ScalarValue(2)
	cols, colsKnown := c.ScalarValue(3)
	if !rowsKnown || !colsKnown || in.Dim(-1) < 0 {
		return nil
	}
	rows, cols, err = b.fit(rows, cols, in.Dim(-1))
	if err == nil {
		c.Out[0] = shapefn.Concat(lead, shapefn.Of(rows, cols))
	}
	return err
}

// fit resolves the requested sizes of matrices with diagonals of the given length; -1 means
// unspecified.
func (b *band) fit(rows, cols, longest int64) (int64, int64, error) {
	minRows, minCols := longest-int64(min(b.upper, 0)), longest+int64(max(b.lower, 0))
	if rows == -1 && cols == -1 {
		rows = max(minRows, minCols)
		cols = rows
	}
	if rows == -1 {
		rows = minRows
	} else if rows < minRows {
		return 0, 0, status.InvalidArgumentf("num_rows is too small")
	}
	if cols == -1 {
		cols = minCols
	} else if cols < minCols {
		return 0, 0, status.InvalidArgumentf("num_cols is too small.")
	}
	if rows != minRows && cols != minCols {
		return 0, 0, status.InvalidArgumentf("num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and "+
			"the length of the given diagonals.\nnum_rows = %d != min_num_rows = %d, num_cols = %d != min_num_cols = %d",
			rows, minRows, cols, minCols)
	}
	return rows, cols, nil
}

func matrixSetDiagShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	diagonal, err := opdef.WithRankAtLeast(c.In[1], 1)
	if err != nil {
		return err
	}
	b, known, err := diagonalRange(c, 2)
	if err != nil {
		return err
	}
	if in.RankKnown() {
		if diagonal, err = setDiagRank(diagonal, in.Rank(), b, known); err != nil {
			return err
		}
		if _, err := b.bounded(in); err != nil {
			return err
		}
	}
	c.Out[0] = in
	if diagonal.RankKnown() && !shapefn.Full(in) {
		drop := 1
		if b.count() > 1 {
			drop = 2
		}
		lead := shapefn.Sub(diagonal, 0, diagonal.Rank()-drop)
		c.Out[0], err = opdef.MergeShapes(in, shapefn.Concat(lead, tensor.UnknownDims(2)))
	}
	return err
}

// setDiagRank checks the rank of packed diagonals against the rank of the matrices.
func setDiagRank(diagonal shapefn.Shape, rank int, b band, known bool) (shapefn.Shape, error) {
	switch {
	case !known:
		if _, err := opdef.WithRankAtLeast(diagonal, rank-1); err != nil {
			return diagonal, err
		}
		return opdef.WithRankAtMost(diagonal, rank)
	case b.count() == 1:
		return opdef.WithRank(diagonal, rank-1)
	}
	return opdef.WithRank(diagonal, rank)
}
