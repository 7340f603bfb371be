package linalg

import (
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	types := "T: {float64, float32, complex64, complex128}"
	register("TridiagonalSolve", "Solves systems of linear equations with tridiagonal matrices, given by their super-, main and subdiagonals.",
		[]string{"diagonals: T", "rhs: T"}, []string{"output: T"},
		[]string{"partial_pivoting: bool = true", "perturb_singular: bool = false", types}, tridiagonalShape,
		table(tridiagonalSolve[float64](), tridiagonalSolve[complex128](), full...))
	register("TridiagonalMatMul", "Multiplies tridiagonal matrices, given by their diagonals, by matrices.",
		[]string{"superdiag: T", "maindiag: T", "subdiag: T", "rhs: T"}, []string{"output: T"}, []string{types}, tridiagonalMatMulShape,
		table(tridiagonalMatMul[float64](), tridiagonalMatMul[complex128](), full...))
}

func tridiagonalShape(c *opdef.ShapeContext) error {
	lhs, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	rhs, err := opdef.WithRankAtLeast(c.In[1], 2)
	if err != nil {
		return err
	}
	c.Out[0] = rhs
	if !lhs.RankKnown() || !rhs.RankKnown() {
		return nil
	}
	if _, err := opdef.MergeShapes(shapefn.Sub(lhs, 0, -2), shapefn.Sub(rhs, 0, -2)); err != nil {
		return err
	}
	if _, err := opdef.MergeDims(lhs.Dim(-1), rhs.Dim(-2)); err != nil {
		return err
	}
	return shapefn.CheckDim(lhs.Dim(-2), 3)
}

func tridiagonalMatMulShape(c *opdef.ShapeContext) error {
	for _, s := range c.In {
		if _, err := opdef.WithRankAtLeast(s, 2); err != nil {
			return err
		}
	}
	diag, rhs := c.In[1], c.In[3]
	c.Out[0] = rhs
	for _, s := range []shapefn.Shape{c.In[0], c.In[2]} {
		var err error
		if diag, err = opdef.MergeShapes(s, diag); err != nil {
			return err
		}
	}
	if !diag.RankKnown() || !rhs.RankKnown() {
		return nil
	}
	if _, err := opdef.MergeShapes(shapefn.Sub(diag, 0, -2), shapefn.Sub(rhs, 0, -2)); err != nil {
		return err
	}
	if _, err := opdef.MergeDims(diag.Dim(-1), rhs.Dim(-2)); err != nil {
		return err
	}
	return shapefn.CheckDim(diag.Dim(-2), 1)
}

func tridiagonalSolve[S scalar]() family[S] {
	outs := func(c *kernel.Construction, in []size) ([][]int64, error) {
		if c.Attrs.Bool("perturb_singular") && !c.Attrs.Bool("partial_pivoting") {
			return nil, status.InvalidArgumentf("Setting perturb_singular requires also setting partial_pivoting.")
		}
		if in[0].rows != 3 {
			return nil, status.InvalidArgumentf("Expected diagonals to be provided as a matrix with 3 rows, got %d rows.", in[0].rows)
		}
		if in[0].cols != in[1].rows {
			return nil, status.InvalidArgumentf("Expected the same number of left-hand sides and right-hand sides, got %d and %d.", in[0].cols, in[1].rows)
		}
		return [][]int64{{int64(in[1].rows), int64(in[1].cols)}}, nil
	}
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		super, main, sub := in[0].row(0), in[0].row(1), in[0].row(2)
		if c.Attrs.Bool("perturb_singular") {
			perturbingFor[S](c.Attrs.Type("T")).solve(super, main, sub, in[1])
		} else if !eliminate(super, main, sub, in[1], c.Attrs.Bool("partial_pivoting")) {
			in[1].fill(math.NaN())
		}
		return [][]S{in[1].a}, nil
	}}
}

// eliminate overwrites x with the solution of the system, and the diagonals with intermediate
// results. It returns false if a pivot is zero.
func eliminate[S scalar](super, main, sub []S, x matrix[S], pivoting bool) bool {
	n := len(main)
	second := membudget.Make[S](n) // second superdiagonal, which row exchanges fill
	for i := range n - 1 {
		if pivoting && abs(sub[i+1]) > abs(main[i]) {
			x.swapRows(i, i+1)
			main[i], sub[i+1] = sub[i+1], main[i]
			super[i], main[i+1] = main[i+1], super[i]
			second[i], super[i+1] = super[i+1], 0
			if i+2 >= n {
				second[i] = 0
			}
		}
		if main[i] == 0 {
			return false
		}
		f := sub[i+1] / main[i]
		main[i+1] -= f * super[i]
		super[i+1] -= f * second[i]
		axpy(x.row(i+1), -f, x.row(i))
	}
	for i := n - 1; i >= 0; i-- {
		if main[i] == 0 {
			return false
		}
		if i+1 < n {
			axpy(x.row(i), -super[i], x.row(i+1))
		}
		if i+2 < n {
			axpy(x.row(i), -second[i], x.row(i+2))
		}
		for j := range x.row(i) {
			x.row(i)[j] /= main[i]
		}
	}
	return true
}

func tridiagonalMatMul[S scalar]() family[S] {
	outs := func(_ *kernel.Construction, in []size) ([][]int64, error) {
		for i, name := range []string{"superdiag", "maindiag", "subdiag"} {
			if in[i] != (size{1, in[3].rows}) {
				return nil, status.InvalidArgumentf("%s must have 1 row and %d columns, got %d and %d", name, in[3].rows, in[i].rows, in[i].cols)
			}
		}
		return [][]int64{{int64(in[3].rows), int64(in[3].cols)}}, nil
	}
	return family[S]{outs, func(_ *call, in []matrix[S]) ([][]S, error) {
		b := in[3]
		out := newMatrix[S](b.rows, b.cols)
		for i := range b.rows {
			axpy(out.row(i), in[1].a[i], b.row(i))
			if i+1 < b.rows {
				axpy(out.row(i), in[0].a[i], b.row(i+1))
			}
			if i > 0 {
				axpy(out.row(i), in[2].a[i], b.row(i-1))
			}
		}
		return [][]S{out.a}, nil
	}}
}
