package linalg

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register("Qr", "Computes the QR decomposition A = Q*R of matrices, with Q unitary and R upper triangular.", []string{"input: T"}, []string{"q: T", "r: T"},
		[]string{"full_matrices: bool = false", anyTypes}, qrShape, table(qrOp[float64](), qrOp[complex128](), withHalf...))
}

func qrShape(c *opdef.ShapeContext) error {
	s, err := opdef.WithRankAtLeast(c.In[0], 2)
	if err != nil || !s.RankKnown() {
		return err
	}
	m, n, batch := s.Dim(-2), s.Dim(-1), shapefn.Sub(s, 0, -2)
	p := shapefn.Min(m, n)
	if c.Attrs.Bool("full_matrices") {
		p = m
	}
	c.Out[0], c.Out[1] = shapefn.Concat(batch, shapefn.Of(m, p)), shapefn.Concat(batch, shapefn.Of(p, n))
	return nil
}

func qrOp[S scalar]() family[S] {
	width := func(c *kernel.Construction, m, n int) int {
		if c.Attrs.Bool("full_matrices") {
			return m
		}
		return min(m, n)
	}
	outs := func(c *kernel.Construction, in []size) ([][]int64, error) {
		m, n := in[0].rows, in[0].cols
		p := int64(width(c, m, n))
		return [][]int64{{int64(m), p}, {p, int64(n)}}, nil
	}
	return family[S]{outs, func(c *call, in []matrix[S]) ([][]S, error) {
		m, n := in[0].rows, in[0].cols
		q, r := qr(c.step, in[0], width(c.Construction, m, n), leastNormal(c.Attrs.Type("T")))
		return [][]S{q.a, r.a}, nil
	}}
}

// reflector is I - tau*v*v^H with v = (0, …, 0, 1, tail). The 1 is element k.
type reflector[S scalar] struct {
	tail []S
	tau  S
	k    int
}

// leastNormal returns the smallest normal number of a type.
func leastNormal(t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return 0x1p-14
	case tensor.Float32, tensor.Complex64:
		return 0x1p-126
	}
	return 0x1p-1022
}

// newReflector returns the reflector that maps column k of a, from row from on, to (beta, 0, …, 0).
// As in Eigen and LAPACK, beta is real and has the opposite sign of the real part of the first
// element. If the sum of squares of the other elements is at most least, the reflector leaves the
// column unchanged.
func newReflector[S scalar](a matrix[S], k, from int, least float64) (reflector[S], S) {
	h := reflector[S]{tail: membudget.Make[S](a.rows - from - 1), k: from}
	norm := 0.0
	for i := range h.tail {
		h.tail[i] = a.at(from+1+i, k)
		norm = math.Hypot(norm, abs(h.tail[i]))
	}
	head := a.at(from, k)
	if side := abs(head - of[S](re(head))); norm*norm <= least && side*side <= least {
		clear(h.tail)
		return h, of[S](re(head))
	}
	size := math.Hypot(abs(head), norm)
	if re(head) >= 0 {
		size = -size
	}
	beta := of[S](size)
	for i := range h.tail {
		h.tail[i] /= head - beta
	}
	h.tau = conj((beta - head) / beta)
	return h, beta
}

// apply overwrites columns lo and following of a with the product of the reflector and a. tau is
// the reflector's tau or its conjugate.
func (h reflector[S]) apply(a matrix[S], tau S, lo int) {
	sum := append([]S(nil), a.row(h.k)[lo:]...)
	for i, v := range h.tail {
		axpy(sum, conj(v), a.row(h.k + 1 + i)[lo:])
	}
	axpy(a.row(h.k)[lo:], -tau, sum)
	for i, v := range h.tail {
		axpy(a.row(h.k + 1 + i)[lo:], -tau*v, sum)
	}
}

// qr returns Q with p columns and R with p rows, which are unfinished if ctx ends. It overwrites a.
func qr[S scalar](ctx context.Context, a matrix[S], p int, least float64) (q, r matrix[S]) {
	var all []reflector[S]
	progress := stepctx.Progress{Context: ctx}
	for k := range min(a.rows, a.cols) {
		if progress.Pass((a.rows-k)*(a.cols-k)) != nil {
			break
		}
		h, beta := newReflector(a, k, k, least)
		h.apply(a, h.tau, k)
		a.set(k, k, beta)
		for i := k + 1; i < a.rows; i++ {
			a.set(i, k, 0)
		}
		all = membudget.Append(all, h)
	}
	q = newMatrix[S](a.rows, p)
	for i := range p {
		q.set(i, i, 1)
	}
	for _, h := range slices.Backward(all) {
		if progress.Pass((a.rows-h.k)*p) != nil {
			break
		}
		h.apply(q, conj(h.tau), 0)
	}
	return q, a.head(p)
}
