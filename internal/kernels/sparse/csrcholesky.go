package sparse

import (
	"context"
	"math/cmplx"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SparseMatrixSparseCholesky",
			Doc: "Computes the sparse lower Cholesky factors of symmetric or Hermitian CSR matrices " +
				"after a permutation of rows and columns.",
			In: []string{"input: variant", "permutation: int32"}, Out: []string{"output: variant"}, Attrs: []string{"type: " + csrTypes},
			Shape: func(c *opdef.ShapeContext) error {
				s, err := squareCSR(c)
				if err == nil && s.RankKnown() {
					if _, err = opdef.WithRank(c.In[1], s.Rank()-1); err == nil {
						_, err = opdef.MergeDims(s.Dim(-1), c.In[1].Dim(-1))
					}
				}
				setCSR(c, c.Attrs.Type("type"), s)
				return err
			},
		},
		Kernels: byCSR("type", newCholesky[float32], newCholesky[float64], newCholesky[complex64], newCholesky[complex128]),
	})
}

// squareCSR returns the shape of the matrix in input 0 of a shape function, which must be square.
func squareCSR(c *opdef.ShapeContext) (shapefn.Shape, error) {
	s, err := csrShape(c, 0)
	if err == nil && s.RankKnown() {
		_, err = opdef.MergeDims(s.Dim(-2), s.Dim(-1))
	}
	return s, err
}

func newCholesky[T csrElem](*kernel.Construction) (kernel.Kernel, error) {
	return kernel.Func(func(ctx *kernel.Context) error {
		m, err := typedInput[T](ctx, 0)
		if err != nil {
			return err
		}
		perm := ctx.Input(1)
		if err := checkCholesky(m, perm); err != nil {
			return err
		}
		order, n := intarg.Values(perm), m.height()
		parts := membudget.Make[csrPart[T]](m.size())
		for b := range parts {
			p := order[b*n : (b+1)*n]
			if err := checkPermutation(p); err != nil {
				return err
			}
			factor, ok := cholesky(ctx.Context(), part[T](m, b), p)
			if err := ctx.Context().Err(); err != nil {
				return err
			}
			if !ok {
				return status.InvalidArgumentf("Sparse Cholesky factorization failed for batch index %d. The input might not be valid.", b)
			}
			parts[b] = factor
		}
		out, err := newCSR(m.shape, parts)
		return putCSR(ctx, out, err)
	}), nil
}

func checkCholesky(m *CSR, perm *tensor.Tensor) error {
	rank, n := len(m.shape), m.height()
	switch {
	case n != m.width():
		return status.InvalidArgumentf("sparse matrix must be square; got: %d != %d", n, m.width())
	case perm.Rank()+1 != rank:
		return status.InvalidArgumentf("sparse matrix must have the same rank as permutation; got: %d != %d + 1.", rank, perm.Rank())
	case perm.Dim(rank-2) != n:
		return status.InvalidArgumentf("permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: %d != %d",
			perm.Dim(rank-2), n)
	case rank == 3 && perm.Dim(0) != m.size():
		return status.InvalidArgumentf("permutation must have the same batch size as sparse matrix; got: %d != %d", perm.Dim(0), m.size())
	}
	return nil
}

func checkPermutation(p []int64) error {
	sorted := slices.Sorted(slices.Values(p))
	for i, x := range sorted {
		if x != int64(i) {
			return status.InvalidArgumentf("permutation must hold each number from 0 to %d once", len(p)-1)
		}
	}
	return nil
}

// cholesky factors the matrix whose element i, j is element order[i], order[j] of a. It reads only
// the lower triangle. The rows of the factor are computed in order; the pattern of each follows
// from the elimination tree (Liu 1986). It returns false if the matrix is not positive definite, or
// ctx ends.
func cholesky[T csrElem](ctx context.Context, a csrPart[T], order []int64) (factor csrPart[T], ok bool) {
	n := a.height
	p := stepctx.Progress{Context: ctx}
	position := membudget.Make[int32](n) // row of the factor for each row of a
	for i, r := range order {
		position[r] = int32(i)
	}
	lower := permuted(a, position)
	factor = csrPart[T]{rows: membudget.Make[int32](n + 1), height: n, width: n}
	parent, mark, x := membudget.Make[int32](n), membudget.Make[int32](n), membudget.Make[T](n)
	for i := range n {
		parent[i], mark[i] = -1, int32(i)
		diagonal := T(0)
		var pattern []int32
		for e := lower.rows[i]; e < lower.rows[i+1]; e++ {
			k := lower.cols[e]
			if k == int32(i) {
				diagonal += lower.vals[e]
				continue
			}
			x[k] += lower.vals[e]
			for ; mark[k] != int32(i); k = parent[k] {
				if parent[k] == -1 {
					parent[k] = int32(i)
				}
				pattern, mark[k] = membudget.Append(pattern, k), int32(i)
			}
		}
		slices.Sort(pattern)
		for _, k := range pattern {
			lo, hi := factor.rows[k], factor.rows[k+1]-1
			if p.Pass(int(hi-lo)+1) != nil {
				return factor, false
			}
			for e := lo; e < hi; e++ {
				x[k] -= x[factor.cols[e]] * conj(factor.vals[e])
			}
			x[k] /= factor.vals[hi]
		}
		for _, k := range pattern {
			factor.cols, factor.vals = membudget.Append(factor.cols, k), membudget.Append(factor.vals, x[k])
			diagonal -= x[k] * conj(x[k])
			x[k] = 0
		}
		root, positive := realRoot(diagonal)
		if !positive {
			return factor, false
		}
		factor.cols, factor.vals = membudget.Append(factor.cols, int32(i)), membudget.Append(factor.vals, root)
		factor.rows[i+1] = int32(len(factor.cols))
	}
	return factor, true
}

// realRoot returns the square root of the real part of v. ok is false unless it is positive.
func realRoot[T csrElem](v T) (T, bool) {
	switch x := any(v).(type) {
	case complex64:
		return any(complex64(cmplx.Sqrt(complex(float64(real(x)), 0)))).(T), real(x) > 0
	case complex128:
		return any(cmplx.Sqrt(complex(real(x), 0))).(T), real(x) > 0
	case float32:
		return any(float32(real(cmplx.Sqrt(complex(float64(x), 0))))).(T), x > 0
	case float64:
		return any(real(cmplx.Sqrt(complex(x, 0)))).(T), x > 0
	}
	return v, false
}

// permuted returns the lower triangle after a permutation of rows and columns. The elements of a
// row are unordered.
func permuted[T csrElem](a csrPart[T], position []int32) csrPart[T] {
	out := csrPart[T]{rows: membudget.Make[int32](a.height + 1), height: a.height, width: a.width}
	byRow := membudget.Make[[]int32](a.height)
	var vals []T
	var cols []int32
	for r := range a.height {
		for e := a.rows[r]; e < a.rows[r+1]; e++ {
			if a.cols[e] > int32(r) {
				continue
			}
			i, j, v := position[r], position[a.cols[e]], a.vals[e]
			if i < j { // the element moved to the upper triangle
				i, j, v = j, i, conj(v)
			}
			byRow[i] = membudget.Append(byRow[i], int32(len(vals)))
			vals, cols = membudget.Append(vals, v), membudget.Append(cols, j)
		}
	}
	for i, elements := range byRow {
		for _, e := range elements {
			out.cols, out.vals = membudget.Append(out.cols, cols[e]), membudget.Append(out.vals, vals[e])
		}
		out.rows[i+1] = int32(len(out.cols))
	}
	return out
}
