package linalg

import (
	"context"
	"math"
)

func init() {
	register("MatrixExponential", "Computes the exponentials of square matrices. Deprecated.", []string{"input: T"}, []string{"output: T"},
		[]string{anyTypes}, squareShape, table(exponentials[float64](), exponentials[complex128](), full...))
}

func exponentials[S scalar]() family[S] {
	return family[S]{sameSize, func(c *call, in []matrix[S]) ([][]S, error) {
		return [][]S{exponential(c.step, in[0]).a}, nil
	}}
}

// pade are the coefficients of the numerator of the Padé approximant of degree 13 of exp. Those of
// the denominator have alternating signs.
var pade = [14]float64{
	64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800,
	33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
}

// padeNorm is the 1-norm up to which the approximant of degree 13 has the precision of float64.
const padeNorm = 5.371920351148152

// exponential returns exp(a), or an unfinished value when ctx ends. It scales a by a power of two,
// evaluates the Padé approximant of degree 13, and squares the result (Higham, The scaling and
// squaring method for the matrix exponential revisited, 2005).
func exponential[S scalar](ctx context.Context, a matrix[S]) matrix[S] {
	if !a.finite() {
		a.fill(math.NaN())
		return a
	}
	squarings := 0
	if norm := a.norm1(); norm > padeNorm {
		squarings = int(math.Ceil(math.Log2(norm / padeNorm)))
		for i := range a.a {
			a.a[i] *= of[S](math.Ldexp(1, -squarings))
		}
	}
	// u has the odd powers of the approximant, v the even ones.
	n := a.rows
	square := a.times(ctx, a)
	u, v, power := newMatrix[S](n, n), newMatrix[S](n, n), identity[S](n)
	for k := 0; k < len(pade); k += 2 {
		axpy(v.a, of[S](pade[k]), power.a)
		axpy(u.a, of[S](pade[k+1]), power.a)
		power = power.times(ctx, square)
	}
	u = a.times(ctx, u)
	for i, x := range u.a {
		v.a[i], u.a[i] = v.a[i]-x, v.a[i]+x
	}
	result := factor(ctx, v).solve(ctx, u)
	for range squarings {
		if ctx.Err() != nil {
			break
		}
		result = result.times(ctx, result)
	}
	return result
}

// norm1 returns the largest sum of absolute values of a column.
func (m matrix[S]) norm1() float64 {
	largest := 0.0
	for j := range m.cols {
		sum := 0.0
		for i := range m.rows {
			sum += abs(m.at(i, j))
		}
		largest = max(largest, sum)
	}
	return largest
}
