package linalg

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register("Svd", "Computes the singular value decomposition A = U*diag(S)*V^H of matrices, with S in descending order.", []string{"input: T"}, []string{"s: T", "u: T", "v: T"},
		[]string{"compute_uv: bool = true", "full_matrices: bool = false", anyTypes}, svdShape, table(svdOp[float64](), svdOp[complex128](), full...))
}

func svdShape(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil {
		return err
	}
	uv := c.Attrs.Bool("compute_uv")
	if !uv {
		c.Out[1], c.Out[2] = shapefn.Of(0), shapefn.Of(0)
	}
	if !s.RankKnown() {
		return nil
	}
	m, n, batch := s.Dim(-2), s.Dim(-1), shapefn.Sub(s, 0, -2)
	p := shapefn.Min(m, n)
	c.Out[0] = shapefn.Concat(batch, shapefn.Of(p))
	if !uv {
		return nil
	}
	left, right := p, p
	if c.Attrs.Bool("full_matrices") {
		left, right = m, n
	}
	c.Out[1], c.Out[2] = shapefn.Concat(batch, shapefn.Of(m, left)), shapefn.Concat(batch, shapefn.Of(n, right))
	return nil
}

func svdOp[S scalar]() family[S] {
	outs := func(c *kernel.Construction, in []size) ([][]int64, error) {
		m, n := int64(in[0].rows), int64(in[0].cols)
		p := min(m, n)
		switch {
		case !c.Attrs.Bool("compute_uv"):
			return [][]int64{{p}}, nil
		case c.Attrs.Bool("full_matrices"):
			return [][]int64{{p}, {m, m}, {n, n}}, nil
		}
		return [][]int64{{p}, {m, p}, {n, p}}, nil
	}
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		a := in[0]
		left, right := min(a.rows, a.cols), min(a.rows, a.cols)
		if c.Attrs.Bool("full_matrices") {
			left, right = a.rows, a.cols
		}
		s, u, v, err := svd(c.step, a, left, right)
		if err != nil {
			return nil, err
		}
		results := [][]S{membudget.Make[S](len(s)), u.a, v.a}
		for i, x := range s {
			results[0][i] = of[S](x)
		}
		if !c.Attrs.Bool("compute_uv") {
			return results[:1], nil
		}
		return results, nil
	}}
}

// svd returns the singular values in descending order and the given numbers of left and right
// singular vectors. If the matrix is not finite, all values are NaN.
func svd[S scalar](ctx context.Context, a matrix[S], left, right int) (s []float64, u, v matrix[S], err error) {
	if a.rows < a.cols {
		s, v, u, err = svd(ctx, a.adjoint(), right, left)
		return s, u, v, err
	}
	if !a.finite() {
		nan := func(n int) []S {
			return repeated(of[S](math.NaN()), n)
		}
		return repeated(math.NaN(), a.cols), matrix[S]{nan(a.rows * left), a.rows, left}, matrix[S]{nan(a.cols * right), a.cols, right}, nil
	}
	// The rows of w are the conjugated columns of a. orthogonalize makes them orthogonal and
	// accumulates the rotations in the rows of z.
	w, z := a.adjoint(), identity[S](a.cols)
	if err := orthogonalize(ctx, w, z); err != nil {
		return nil, u, v, err
	}
	order := membudget.Make[int](a.cols)
	norms := membudget.Make[float64](a.cols)
	for i := range order {
		order[i], norms[i] = i, norm(w.row(i))
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case norms[i] > norms[j]:
			return -1
		case norms[i] < norms[j]:
			return 1
		}
		return 0
	})
	basis, vectors := newMatrix[S](left, a.rows), newMatrix[S](right, a.cols)
	for k, i := range order {
		s = append(s, norms[i])
		copy(vectors.row(k), z.row(i))
		if norms[i] > 1e-300 {
			axpy(basis.row(k), of[S](1/norms[i]), w.row(i))
		}
	}
	complete(ctx, basis)
	return s, basis.adjoint(), vectors.adjoint(), ctx.Err()
}

// orthogonalize rotates pairs of rows of w until all are orthogonal, and the rows of z with them
// (one-sided Jacobi method of Hestenes).
func orthogonalize[S scalar](ctx context.Context, w, z matrix[S]) error {
	for range 60 {
		rotated := false
		for p := range w.rows {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for q := p + 1; q < w.rows; q++ {
				x, y := w.row(p), w.row(q)
				a, b, g := norm(x), norm(y), dot(x, y)
				size := abs(g)
				if size == 0 || size <= 1e-16*a*b {
					continue
				}
				rotated = true
				// g = size*phase. Multiplying row q by the phase makes the rotation real.
				phase := g / of[S](size)
				zeta := (b - a) * (b + a) / (2 * size)
				t := math.Copysign(1, zeta) / (math.Abs(zeta) + math.Hypot(1, zeta))
				c := 1 / math.Hypot(1, t)
				rotate(x, y, c, c*t, phase)
				rotate(z.row(p), z.row(q), c, c*t, phase)
			}
		}
		if !rotated {
			break
		}
	}
	return nil
}

// rotate replaces x and y by c*x - s*phase'*y and s*phase*x + c*y, where phase' is the conjugate of
// phase.
func rotate[S scalar](x, y []S, c, s float64, phase S) {
	for i := range x {
		a, b := x[i], y[i]*phase
		x[i] = of[S](c)*a - of[S](s)*b
		y[i] = of[S](s)*a + of[S](c)*b
	}
}

// dot returns x*y^H.
func dot[S scalar](x, y []S) (sum S) {
	for i, v := range x {
		sum += v * conj(y[i])
	}
	return sum
}

func norm[S scalar](x []S) float64 {
	size, sum := 0.0, 0.0
	for _, v := range x {
		size = max(size, abs(v))
	}
	if size == 0 {
		return 0
	}
	for _, v := range x {
		r := abs(v) / size
		sum += r * r
	}
	return size * math.Sqrt(sum)
}

// complete replaces zero rows by unit vectors that are orthogonal to all other rows.
func complete[S scalar](ctx context.Context, m matrix[S]) {
	next := 0
	for i := range m.rows {
		if norm(m.row(i)) > 0.5 {
			continue
		}
		for ; next < m.cols && ctx.Err() == nil; next++ {
			v := membudget.Make[S](m.cols)
			v[next] = 1
			for range 2 { // the second pass restores lost orthogonality
				for j := range m.rows {
					axpy(v, -dot(v, m.row(j)), m.row(j))
				}
			}
			if n := norm(v); n > 1e-2/float64(m.cols) {
				axpy(m.row(i), of[S](1/n), v)
				break
			}
		}
	}
}

// repeated returns n equal values.
func repeated[T any](v T, n int) []T {
	out := membudget.Make[T](n)
	for i := range out {
		out[i] = v
	}
	return out
}
