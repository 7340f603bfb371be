package linalg

import (
	"context"
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "MatrixSolveLs",
			Doc: "Solves linear least-squares problems with a penalty of l2_regularizer on the squared norm of the solution, by a " +
				"Cholesky decomposition of the normal equations if fast is true. Otherwise returns the minimum-norm solution without a penalty.",
			In: []string{"matrix: T", "rhs: T", "l2_regularizer: float64"}, Out: []string{"output: T"},
			Attrs: []string{anyTypes, "fast: bool = true"},
			Shape: func(c *opdef.ShapeContext) error { return solveShape(c, false) },
		},
		Kernels: kernel.ByType("T", kernel.Table{
			tensor.Float32: newLeastSquares(f32), tensor.Float64: newLeastSquares(f64),
			tensor.Complex64: newLeastSquares(c64), tensor.Complex128: newLeastSquares(c128),
		}),
	})
}

func newLeastSquares[T tensor.Elem, S scalar](e element[T, S]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		return kernel.Func(func(ctx *kernel.Context) error {
			r := ctx.Input(2)
			outs := func(_ *kernel.Construction, in []size) ([][]int64, error) { return rectangular(in) }
			return runStack(ctx, c, e, 2, family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
				// Without matrices the regularizer is not checked.
				if r.Rank() != 0 {
					return nil, status.InvalidArgumentf("l2_regularizer must be scalar, got shape %v", r.Shape())
				}
				penalty := tensor.Value[float64](r)
				if !(penalty >= 0) {
					return nil, status.InvalidArgumentf("l2_regularizer must be >= 0.")
				}
				x, err := leastSquares(c.step, in[0], in[1], penalty, c.Attrs.Bool("fast"))
				return [][]S{x.a}, err
			}})
		}), nil
	}
}

func leastSquares[S scalar](ctx context.Context, a, b matrix[S], penalty float64, fast bool) (matrix[S], error) {
	if len(a.a) == 0 || len(b.a) == 0 {
		return newMatrix[S](a.cols, b.cols), nil
	}
	if !fast {
		return smallest(ctx, a, b)
	}
	at := a.adjoint()
	wide := a.rows < a.cols
	gram, x := at.times(ctx, a), b
	if wide {
		gram = a.times(ctx, at)
	} else {
		x = at.times(ctx, b)
	}
	for i := range gram.rows {
		gram.set(i, i, gram.at(i, i)+of[S](penalty))
	}
	l, ok := cholesky(ctx, gram)
	if !ok || illConditioned(l) {
		return x, status.InvalidArgumentf("Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0.")
	}
	substitute(ctx, l, x, true, false)
	substitute(ctx, l.adjoint(), x, false, false)
	if wide {
		x = at.times(ctx, x)
	}
	return x, nil
}

// illConditioned reports whether a Cholesky factor has a pivot of the size of rounding errors.
func illConditioned[S scalar](l matrix[S]) bool {
	lo, hi := math.Inf(1), 0.0
	for i := range l.rows {
		p := re(l.at(i, i))
		lo, hi = min(lo, p), max(hi, p)
	}
	return lo*lo <= 0x1p-51*hi*hi
}

// smallest returns the minimum-norm solution. It ignores singular values of the size of rounding
// errors.
func smallest[S scalar](ctx context.Context, a, b matrix[S]) (matrix[S], error) {
	p := min(a.rows, a.cols)
	s, u, v, err := svd(ctx, a, p, p)
	if err != nil {
		return a, err
	}
	x := u.adjoint().times(ctx, b)
	for i := range p {
		scale := 0.0
		if s[i] > 0x1p-52*float64(max(a.rows, a.cols))*s[0] {
			scale = 1 / s[i]
		}
		for j := range x.row(i) {
			x.row(i)[j] *= of[S](scale)
		}
	}
	return v.times(ctx, x), nil
}
