package linalg

import (
	"context"
	"math"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register("MatrixInverse", "Inverts square matrices, or their adjoints.", []string{"input: T"}, []string{"output: T"},
		[]string{"adjoint: bool = false", anyTypes}, squareShape, table(inverse[float64](), inverse[complex128](), withHalf...))
	register("MatrixSolve", "Solves systems of linear equations with square matrices, or their adjoints.",
		[]string{"matrix: T", "rhs: T"}, []string{"output: T"}, []string{"adjoint: bool = false", anyTypes},
		func(c *opdef.ShapeContext) error { return solveShape(c, true) }, table(solver[float64](), solver[complex128](), full...))
	register("MatrixDeterminant", "Computes the determinants of square matrices.", []string{"input: T"}, []string{"output: T"},
		[]string{"T: {float16, float32, float64, complex64, complex128}"}, determinantShape, table(determinant[float64](), determinant[complex128](), full...))
	register("LogMatrixDeterminant", "Computes the sign and the log of the absolute value of the determinants of square matrices.",
		[]string{"input: T"}, []string{"sign: T", "log_abs_determinant: T"},
		[]string{"T: {float16, float32, float64, complex64, complex128}"}, determinantShape, table(logDeterminant[float64](), logDeterminant[complex128](), full...))
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "Lu", Doc: "Computes the LU decomposition P*A = L*U of square matrices, with partial pivoting of rows. L and U are packed into one matrix.",
			In: []string{"input: T"}, Out: []string{"lu: T", "p: output_idx_type"},
			Attrs: []string{anyTypes, "output_idx_type: {int32, int64} = int32"}, Shape: luShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newLu(f32), tensor.Float64: newLu(f64), tensor.Complex64: newLu(c64), tensor.Complex128: newLu(c128),
		}),
	})
}

func determinantShape(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	c.SetAll(shapefn.Sub(s, 0, -2))
	_, err = opdef.MergeDims(s.Dim(-1), s.Dim(-2))
	return err
}

func luShape(c *opdef.ShapeContext) (err error) {
	if c.Out[0], err = squares(c.In[0]); err == nil && c.Out[0].RankKnown() {
		c.Out[1] = shapefn.Sub(c.Out[0], 0, -1)
	}
	return err
}

// solveShape is the shape function of operations that solve systems. Matrices and right-hand sides
// must have the same batch dimensions.
func solveShape(c *opdef.ShapeContext, isSquare bool) (err error) {
	lhs, err := opdef.WithRankAtLeast(c.In[0], 2)
	if isSquare {
		lhs, err = squares(c.In[0])
	}
	if err != nil {
		return err
	}
	rhs, err := opdef.WithRankAtLeast(c.In[1], 2)
	if err != nil {
		return err
	}
	batch, err := opdef.MergeShapes(shapefn.Sub(lhs, 0, -2), shapefn.Sub(rhs, 0, -2))
	if err != nil {
		return err
	}
	m, err := opdef.MergeDims(lhs.Dim(-2), rhs.Dim(-2))
	if err != nil {
		return err
	}
	n := lhs.Dim(-1)
	if isSquare {
		if n, err = opdef.MergeDims(m, n); err != nil {
			return err
		}
	}
	c.Out[0] = shapefn.Concat(batch, shapefn.Of(n, rhs.Dim(-1)))
	return nil
}

// factored is P*A = L*U. Row i of the factors was row perm[i] of A, and L has a unit diagonal.
type factored[S scalar] struct {
	lu   matrix[S]
	perm []int
	odd  bool // whether the permutation is odd
}

// factor overwrites a with its LU factors, which are unfinished if ctx ends.
func factor[S scalar](ctx context.Context, a matrix[S]) factored[S] {
	f := factored[S]{lu: a, perm: membudget.Make[int](a.rows)}
	for i := range f.perm {
		f.perm[i] = i
	}
	p := stepctx.Progress{Context: ctx}
	for k := range a.rows {
		if p.Pass((a.rows-k)*(a.rows-k)) != nil {
			break
		}
		best := k
		for i := k + 1; i < a.rows; i++ {
			if abs(a.at(i, k)) > abs(a.at(best, k)) {
				best = i
			}
		}
		if best != k {
			a.swapRows(k, best)
			f.perm[k], f.perm[best] = f.perm[best], f.perm[k]
			f.odd = !f.odd
		}
		pivot := a.at(k, k)
		if pivot == 0 {
			continue
		}
		for i := k + 1; i < a.rows; i++ {
			x := a.at(i, k) / pivot
			a.set(i, k, x)
			axpy(a.row(i)[k+1:], -x, a.row(k)[k+1:])
		}
	}
	return f
}

// singular reports whether a pivot is zero or NaN.
func (f factored[S]) singular() bool {
	for i := range f.lu.rows {
		if !(abs(f.lu.at(i, i)) > 0) {
			return true
		}
	}
	return false
}

// solve returns the solution of A*X = B, which is unfinished if ctx ends.
func (f factored[S]) solve(ctx context.Context, b matrix[S]) matrix[S] {
	x := newMatrix[S](b.rows, b.cols)
	for i, p := range f.perm {
		copy(x.row(i), b.row(p))
	}
	substitute(ctx, f.lu, x, true, true)
	substitute(ctx, f.lu, x, false, false)
	return x
}

// substitute overwrites x with the solution of a triangular system, which is unfinished if ctx
// ends. unit means that the diagonal consists of ones.
func substitute[S scalar](ctx context.Context, a, x matrix[S], lower, unit bool) {
	p := stepctx.Progress{Context: ctx}
	for step := range a.rows {
		if p.Pass(step*x.cols) != nil {
			return
		}
		i, lo, hi := step, 0, step
		if !lower {
			i = a.rows - 1 - step
			lo, hi = i+1, a.rows
		}
		for k := lo; k < hi; k++ {
			axpy(x.row(i), -a.at(i, k), x.row(k))
		}
		if unit {
			continue
		}
		for j := range x.row(i) {
			x.row(i)[j] /= a.at(i, i)
		}
	}
}

func inverse[S scalar]() family[S] {
	return family[S]{sameSize, func(c *call, in []matrix[S]) ([][]S, error) {
		a := in[0]
		if c.Attrs.Bool("adjoint") {
			a = a.adjoint()
		}
		f := factor(c.step, a)
		if f.singular() {
			return nil, status.InvalidArgumentf("Input is not invertible.")
		}
		return [][]S{f.solve(c.step, identity[S](a.rows)).a}, nil
	}}
}

func solver[S scalar]() family[S] {
	return family[S]{solution, func(c *call, in []matrix[S]) ([][]S, error) {
		a := in[0]
		if c.Attrs.Bool("adjoint") {
			a = a.adjoint()
		}
		f := factor(c.step, a)
		if f.singular() {
			return nil, status.InvalidArgumentf("Input matrix is not invertible.")
		}
		return [][]S{f.solve(c.step, in[1]).a}, nil
	}}
}

func determinant[S scalar]() family[S] {
	outs := func(_ *kernel.Construction, in []size) ([][]int64, error) { return [][]int64{{}}, square(in) }
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		sign, log := factor(c.step, in[0]).determinant()
		return [][]S{{sign * of[S](math.Exp(log))}}, nil
	}}
}

func logDeterminant[S scalar]() family[S] {
	outs := func(_ *kernel.Construction, in []size) ([][]int64, error) { return [][]int64{{}, {}}, square(in) }
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		sign, log := factor(c.step, in[0]).determinant()
		return [][]S{{sign}, {of[S](log)}}, nil
	}}
}

// determinant returns the sign of the determinant, with absolute value 1, and the logarithm of its
// absolute value.
func (f factored[S]) determinant() (sign S, log float64) {
	sign = 1
	if f.odd {
		sign = -1
	}
	for i := range f.lu.rows {
		x := f.lu.at(i, i)
		size := abs(x)
		if size == 0 {
			return 0, math.Inf(-1)
		}
		sign *= direction(x, size)
		log += math.Log(size)
	}
	return sign, log
}

// direction returns x divided by size, its absolute value.
func direction[S scalar](x S, size float64) S {
	if math.IsInf(size, 1) && !isComplex[S]() {
		return of[S](math.Copysign(1, re(x)))
	}
	return x / of[S](size)
}

func newLu[T tensor.Elem, S scalar](e element[T, S]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		if rank := ctx.Input(0).Rank(); rank < 2 {
			return status.InvalidArgumentf("Input tensor must have rank >= 2, got %d", rank)
		}
		batch, sizes, err := analyze(ctx, 1)
		if err != nil {
			return err
		}
		if err := square(sizes); err != nil {
			return err
		}
		n := sizes[0].rows
		lu, err := ctx.Allocate(0, ctx.Input(0).Shape())
		if err != nil {
			return err
		}
		p, err := ctx.Allocate(1, ctx.Input(0).Shape()[:len(batch)+1])
		if err != nil {
			return err
		}
		return each(ctx, int(batch.NumElements()), sizes, func(i int) error {
			f := factor(ctx.Context(), e.read(tensor.Values[T](ctx.Input(0)), i, n, n))
			if f.singular() {
				return status.InvalidArgumentf("Input is not invertible.")
			}
			e.write(tensor.Values[T](lu), i, f.lu.a)
			for j, row := range f.perm {
				if p.DType() == tensor.Int64 {
					tensor.Values[int64](p)[i*n+j] = int64(row)
				} else {
					tensor.Values[int32](p)[i*n+j] = int32(row)
				}
			}
			return nil
		})
	})
}
