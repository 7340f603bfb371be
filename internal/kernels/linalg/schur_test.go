package linalg

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// TestSchur checks the Schur form and the eigenvectors against their definitions, on various kinds
// of matrices.
func TestSchur(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]func(i, j int) complex128{
		"random":       func(int, int) complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) },
		"real":         func(int, int) complex128 { return complex(rng.NormFloat64(), 0) },
		"rotation":     func(i, j int) complex128 { return cmplx.Exp(complex(0, float64(i*j))) },
		"cyclic shift": func(i, j int) complex128 { return one(j == i+1) },
		"zero":         func(int, int) complex128 { return 0 },
		"identity":     func(i, j int) complex128 { return one(i == j) },
	}
	for name, at := range kinds {
		for _, n := range []int{0, 1, 2, 3, 7, 20} {
			a := newMatrix[complex128](n, n)
			for i := range n {
				for j := range n {
					a.set(i, j, at(i, j))
				}
			}
			f, ok := schur(t.Context(), a.clone())
			if !ok {
				t.Fatalf("%s of %d: no convergence", name, n)
			}
			for i := range n {
				for j := range i {
					if f.t.at(i, j) != 0 {
						t.Errorf("%s of %d: element (%d, %d) of T is %v", name, n, i, j, f.t.at(i, j))
					}
				}
			}
			near(t, name+": U*T*U^H", f.back(t.Context(), f.t), a)
			near(t, name+": U*U^H", f.u.times(t.Context(), f.u.adjoint()), identity[complex128](n))
			v := f.vectors(t.Context())
			scaled := v.clone()
			for i := range n {
				for j := range n {
					scaled.set(i, j, v.at(i, j)*f.t.at(j, j))
				}
			}
			near(t, name+": A*V", a.times(t.Context(), v), scaled)
		}
	}
}

func one(yes bool) complex128 {
	if yes {
		return 1
	}
	return 0
}
