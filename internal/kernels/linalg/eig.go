package linalg

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register("SelfAdjointEigV2", "Computes the eigenvalues, in ascending order, and the eigenvectors of Hermitian matrices. Reads only the lower triangles.",
		[]string{"input: T"}, []string{"e: T", "v: T"}, []string{"compute_v: bool = true", anyTypes}, eigShape,
		table(selfAdjointEig[float64](), selfAdjointEig[complex128](), full...))
}

func eigShape(c *opdef.ShapeContext) error {
	s, err := squares(c.In[0])
	if err != nil {
		return err
	}
	if !c.Attrs.Bool("compute_v") {
		c.Out[1] = shapefn.Of(0)
	}
	if !s.RankKnown() {
		return nil
	}
	c.Out[0] = shapefn.Sub(s, 0, -1)
	if c.Attrs.Bool("compute_v") {
		c.Out[1] = s
	}
	return nil
}

func selfAdjointEig[S scalar]() family[S] {
	outs := func(c *kernel.Construction, in []size) ([][]int64, error) {
		n := int64(in[0].rows)
		if !c.Attrs.Bool("compute_v") {
			return [][]int64{{n}}, square(in)
		}
		return [][]int64{{n}, {n, n}}, square(in)
	}
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		e, v, err := hermitianEig(c.step, in[0])
		if err != nil {
			return nil, err
		}
		values := membudget.Make[S](len(e))
		for i, x := range e {
			values[i] = of[S](x)
		}
		if !c.Attrs.Bool("compute_v") {
			return [][]S{values}, nil
		}
		return [][]S{values, v.a}, nil
	}}
}

// hermitianEig returns the eigenvalues, in ascending order, of the Hermitian matrix with a's lower
// triangle, and unit eigenvectors in the columns of a matrix. It uses the cyclic Jacobi method. If
// the triangle is not finite, all values are NaN.
func hermitianEig[S scalar](ctx context.Context, a matrix[S]) ([]float64, matrix[S], error) {
	a = lowerPart(a)
	n := a.rows
	if !a.finite() {
		a.fill(math.NaN())
		return repeated(math.NaN(), n), a, nil
	}
	for i := range n {
		a.set(i, i, of[S](re(a.at(i, i))))
		for j := range i {
			a.set(j, i, conj(a.at(i, j)))
		}
	}
	v := identity[S](n) // rows are conjugates of eigenvectors
	for range 60 {
		rotated := false
		for p := range n {
			if ctx.Err() != nil {
				return nil, a, ctx.Err()
			}
			for q := p + 1; q < n; q++ {
				rotated = annihilate(a, v, p, q) || rotated
			}
		}
		if !rotated {
			break
		}
	}
	order := membudget.Make[int](n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(re(a.at(i, i)), re(a.at(j, j))) })
	e, sorted := membudget.Make[float64](n), newMatrix[S](n, n)
	for k, i := range order {
		e[k] = re(a.at(i, i))
		copy(sorted.row(k), v.row(i))
	}
	return e, sorted.adjoint(), nil
}

// annihilate zeroes element (p, q) of a by a two-sided rotation, and applies the rotation to the
// rows of v. It returns false if the element is negligible.
func annihilate[S scalar](a, v matrix[S], p, q int) bool {
	g := a.at(p, q)
	size, x, y := abs(g), re(a.at(p, p)), re(a.at(q, q))
	if size == 0 || size <= 1e-17*math.Sqrt(math.Abs(x))*math.Sqrt(math.Abs(y)) || size < 1e-300 {
		return false
	}
	phase := g / of[S](size)
	zeta := (y - x) / (2 * size)
	t := math.Copysign(1, zeta) / (math.Abs(zeta) + math.Hypot(1, zeta))
	c := 1 / math.Hypot(1, t)
	rotate(a.row(p), a.row(q), c, c*t, phase)
	rotate(v.row(p), v.row(q), c, c*t, phase)
	for i := range a.rows {
		row := a.row(i)
		s, w := row[p], row[q]*conj(phase)
		row[p], row[q] = of[S](c)*s-of[S](c*t)*w, of[S](c*t)*s+of[S](c)*w
	}
	a.set(p, q, 0)
	a.set(q, p, 0)
	a.set(p, p, of[S](x-t*size))
	a.set(q, q, of[S](y+t*size))
	return math.Abs(t*size) > 1e-17*(math.Abs(x)+math.Abs(y)) || size > 1e-17*(math.Abs(x)+math.Abs(y))
}
