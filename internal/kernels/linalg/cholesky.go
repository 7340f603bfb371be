package linalg

import (
	"context"
	"math"

	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	register("Cholesky", "Computes the Cholesky decomposition L*L^H of positive definite matrices. Reads only the lower triangles.",
		[]string{"input: T"}, []string{"output: T"}, []string{anyTypes}, squareShape, table(choleskyOp[float64](), choleskyOp[complex128](), full...))
	register("BatchCholesky", "Computes Cholesky for real matrices.", []string{"input: T"}, []string{"output: T"}, []string{realTypes},
		squareShape, table(choleskyOp[float64](), choleskyOp[complex128](), single...))
	grad := family[float64]{choleskyGradSize, choleskyGrad}
	register("CholeskyGrad", "Computes the gradient of Cholesky from its output and the gradient of the output.",
		[]string{"l: T", "grad: T"}, []string{"output: T"}, []string{"T: {float16, float32, float64}"}, squareShape,
		table(grad, family[complex128]{}, single...))
	register("BatchCholeskyGrad", "Is CholeskyGrad.", []string{"l: T", "grad: T"}, []string{"output: T"}, []string{"T: {float32, float64}"},
		squareShape, table(grad, family[complex128]{}, single...))
}

func choleskyOp[S scalar]() family[S] {
	return family[S]{sameSize, func(c *call, in []matrix[S]) ([][]S, error) {
		l, ok := cholesky(c.step, in[0])
		if !ok {
			// TensorFlow programs expect NaN here instead of an error.
			l.fill(math.NaN())
			l = lowerPart(l)
		}
		return [][]S{l.a}, nil
	}}
}

// cholesky returns the lower factor of a. It returns false if a is not positive definite, or ctx
// ends.
func cholesky[S scalar](ctx context.Context, a matrix[S]) (matrix[S], bool) {
	l := newMatrix[S](a.rows, a.rows)
	p := stepctx.Progress{Context: ctx}
	for i := range a.rows {
		if p.Pass(i*i) != nil {
			return l, false
		}
		for j := range i + 1 {
			sum := a.at(i, j)
			for k, x := range l.row(i)[:j] {
				sum -= x * conj(l.at(j, k))
			}
			if i != j {
				l.set(i, j, sum/l.at(j, j))
				continue
			}
			d := re(sum)
			if !(d > 0) {
				return l, false
			}
			l.set(i, i, of[S](math.Sqrt(d)))
		}
	}
	return l, true
}

func choleskyGradSize(_ *kernel.Construction, in []size) ([][]int64, error) {
	if in[0] != in[1] || in[0].rows != in[0].cols {
		return nil, status.InvalidArgumentf("Inputs must be square matrices of the same shape.")
	}
	return [][]int64{{int64(in[0].rows), int64(in[0].cols)}}, nil
}

// choleskyGrad computes L^-H * sym(L^H * grad) * L^-1. sym halves the diagonal of the lower
// triangle, mirrors the triangle, and halves the result (Murray, Differentiation of the Cholesky
// decomposition, 2016).
func choleskyGrad(c *call, in []matrix[float64]) ([][]float64, error) {
	l := lowerPart(in[0])
	p := l.adjoint().times(c.step, lowerPart(in[1]))
	for i := range p.rows {
		for j := range i {
			p.set(j, i, p.at(i, j))
		}
	}
	upper := l.adjoint()
	substitute(c.step, upper, p, false, false)
	p = p.adjoint()
	substitute(c.step, upper, p, false, false)
	for i := range p.a {
		p.a[i] /= 2
	}
	return [][]float64{p.a}, nil
}

func lowerPart[S scalar](m matrix[S]) matrix[S] {
	l := m.clone()
	for i := range l.rows {
		clear(l.row(i)[i+1:])
	}
	return l
}
