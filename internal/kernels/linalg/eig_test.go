package linalg

import (
	"math"
	"math/rand/v2"
	"testing"
)

// testDecompositions checks that A*V = V*diag(e) with unitary V, and A = U*diag(s)*V^H. These are
// unique only up to phases.
func testDecompositions[S scalar](t *testing.T, draw func() S) {
	for _, n := range []int{1, 2, 3, 7, 20} {
		a := newMatrix[S](n, n)
		for i := range a.a {
			a.a[i] = draw()
		}
		h := a.times(t.Context(), a.adjoint())
		e, v, _ := hermitianEig(t.Context(), h.clone())
		near(t, "V^H*V", v.adjoint().times(t.Context(), v), identity[S](n))
		near(t, "H*V", h.times(t.Context(), v), scaled(v, e))
		s, u, w, _ := svd(t.Context(), a.clone(), n, n)
		near(t, "U^H*U", u.adjoint().times(t.Context(), u), identity[S](n))
		near(t, "U*S*V^H", scaled(u, s).times(t.Context(), w.adjoint()), a)
		s, u, w, _ = svd(t.Context(), a.head((n+1)/2), (n+1)/2, n)
		near(t, "W^H*W", w.adjoint().times(t.Context(), w), identity[S](n))
		near(t, "U*S*W^H", scaled(u, s).times(t.Context(), w.left(len(s)).adjoint()), a.head((n+1)/2))
	}
}

func TestDecompositions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	t.Run("real", func(t *testing.T) { testDecompositions(t, r.NormFloat64) })
	t.Run("complex", func(t *testing.T) {
		testDecompositions(t, func() complex128 { return complex(r.NormFloat64(), r.NormFloat64()) })
	})
}

// scaled returns m with its columns scaled.
func scaled[S scalar](m matrix[S], by []float64) matrix[S] {
	out := m.clone()
	for i := range out.rows {
		for j := range out.row(i) {
			out.row(i)[j] *= of[S](by[j])
		}
	}
	return out
}

func near[S scalar](t *testing.T, what string, got, want matrix[S]) {
	t.Helper()
	for i := range got.a {
		if d := abs(got.a[i] - want.a[i]); d > 1e-10 || math.IsNaN(d) {
			t.Fatalf("%s of size %d: element %d is %v, want %v", what, got.rows, i, got.a[i], want.a[i])
		}
	}
}
