package linalg

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in, out := []string{"input: T"}, []string{"output: T"}
	register("MatrixSquareRoot", "Computes the principal square roots of square matrices. The result is NaN if there is none.",
		in, out, []string{anyTypes}, squareShape, table(function[float64](squareRoot), function[complex128](squareRoot), full...))
	register("MatrixLogarithm", "Computes the principal logarithms of square matrices. The result is NaN if there is none.",
		in, out, []string{"T: {complex64, complex128}"}, squareShape,
		table(family[float64]{}, function[complex128](logarithm), tensor.Complex64, tensor.Complex128))
}

// function returns an operation that applies a function of matrices. f computes the function of an
// upper triangular Schur factor. It returns false if the function has no value, or ctx ends.
func function[S scalar](f func(ctx context.Context, t matrix[complex128]) (matrix[complex128], bool)) family[S] {
	return family[S]{sameSize, func(c *call, in []matrix[S]) ([][]S, error) {
		wide := newMatrix[complex128](in[0].rows, in[0].rows)
		for i, x := range in[0].a {
			wide.a[i] = toComplex(x)
		}
		form, ok := schur(c.step, wide)
		if c.step.Err() != nil {
			return nil, c.step.Err()
		}
		result := form.t
		if ok {
			result, ok = f(c.step, form.t)
		}
		if !ok {
			for i := range in[0].a {
				in[0].a[i] = fromComplex[S](cmplx.NaN())
			}
			return [][]S{in[0].a}, nil
		}
		result = form.back(c.step, result)
		for i, x := range result.a {
			if !isComplex[S]() && math.Abs(imag(x)) > 1e-8*(1+cmplx.Abs(x)) {
				in[0].fill(math.NaN()) // the root is not real
				break
			}
			in[0].a[i] = fromComplex[S](x)
		}
		return [][]S{in[0].a}, nil
	}}
}

func isComplex[S scalar]() bool {
	var s S
	_, ok := any(s).(complex128)
	return ok
}

func toComplex[S scalar](x S) complex128 {
	if c, ok := any(x).(complex128); ok {
		return c
	}
	return complex(any(x).(float64), 0)
}

// fromComplex returns x as an S. If S is real, it drops the imaginary part.
func fromComplex[S scalar](x complex128) S {
	if s, ok := any(x).(S); ok {
		return s
	}
	return any(real(x)).(S)
}

// squareRoot returns the principal square root of an upper triangular matrix (Björck and
// Hammarling, A Schur method for the square root of a matrix, 1983).
func squareRoot(ctx context.Context, t matrix[complex128]) (matrix[complex128], bool) {
	r := newMatrix[complex128](t.rows, t.rows)
	p := stepctx.Progress{Context: ctx}
	for j := range t.rows {
		if t.at(j, j) == 0 || p.Pass(j*j) != nil {
			return r, false
		}
		r.set(j, j, cmplx.Sqrt(t.at(j, j)))
		for i := j - 1; i >= 0; i-- {
			sum := t.at(i, j)
			for k := i + 1; k < j; k++ {
				sum -= r.at(i, k) * r.at(k, j)
			}
			r.set(i, j, sum/(r.at(i, i)+r.at(j, j)))
		}
	}
	return r, r.finite()
}

// gauss7 holds the nodes and weights of the 7-point Gauss-Legendre rule on [0, 1].
var gauss7 = [7][2]float64{
	{0.0254460438286207377369052, 0.0647424830844348466353057},
	{0.1292344072003027800680676, 0.1398526957446383339507339},
	{0.2970774243113014165466968, 0.1909150252525594724751849},
	{0.5000000000000000000000000, 0.2089795918367346938775510},
	{0.7029225756886985834533032, 0.1909150252525594724751849},
	{0.8707655927996972199319324, 0.1398526957446383339507339},
	{0.9745539561713792622630948, 0.0647424830844348466353057},
}

// logarithm returns the principal logarithm of an upper triangular matrix. It takes square roots
// until the matrix is close to the identity, and then evaluates the Padé approximant in partial
// fractions (Higham, Evaluating Padé approximants of the matrix logarithm, 2001).
func logarithm(ctx context.Context, t matrix[complex128]) (matrix[complex128], bool) {
	const closeTo1 = 0.26 // distance at which the approximant of degree 7 has float64 precision
	n, root, roots := t.rows, t.clone(), 0
	for distance(root) > closeTo1 {
		var ok bool
		if root, ok = squareRoot(ctx, root); !ok || roots > 100 {
			return root, false
		}
		roots++
	}
	for i := range n {
		if t.at(i, i) == 0 {
			return root, false
		}
		root.set(i, i, root.at(i, i)-1)
	}
	log := newMatrix[complex128](n, n)
	for _, g := range gauss7 {
		left := newMatrix[complex128](n, n)
		for i, x := range root.a {
			left.a[i] = complex(g[0], 0) * x
		}
		for i := range n {
			left.set(i, i, left.at(i, i)+1)
		}
		part := root.clone()
		substitute(ctx, left, part, false, false)
		axpy(log.a, complex(g[1], 0), part.a)
	}
	for i := range log.a {
		log.a[i] *= complex(math.Ldexp(1, roots), 0)
	}
	for i := range n {
		log.set(i, i, cmplx.Log(t.at(i, i))) // exact, and the dominant part
	}
	return log, true
}

// distance returns the 1-norm of m minus the identity.
func distance(m matrix[complex128]) float64 {
	most := 0.0
	for j := range m.cols {
		sum := 0.0
		for i := range m.rows {
			x := m.at(i, j)
			if i == j {
				x--
			}
			sum += cmplx.Abs(x)
		}
		most = max(most, sum)
	}
	return most
}
