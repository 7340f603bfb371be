package linalg

import (
	"context"
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/tensor"
)

// schurForm is A = U*T*U^H with U unitary and T upper triangular.
type schurForm struct{ t, u matrix[complex128] }

// schur returns the Schur form of a square matrix, by QR steps on its Hessenberg form. It returns
// false if a is not finite, the steps do not converge, or ctx ends. It overwrites a.
func schur(ctx context.Context, a matrix[complex128]) (schurForm, bool) {
	f := schurForm{t: a, u: identity[complex128](a.rows)}
	if !a.finite() {
		return f, false
	}
	f.reduce(ctx)
	const perColumn = 30
	left, tries := perColumn*a.rows, 0
	for hi := a.rows - 1; hi > 0; {
		lo := hi
		for lo > 0 && !f.deflates(lo) {
			lo--
		}
		if lo == hi {
			hi, tries = hi-1, 0
			continue
		}
		if left--; left < 0 || ctx.Err() != nil {
			return f, false
		}
		f.step(lo, hi, f.shift(hi, tries))
		tries++
	}
	return f, true
}

// reduce zeroes t below its first subdiagonal, unless ctx ends.
func (f schurForm) reduce(ctx context.Context) {
	for k := range f.t.rows - 1 {
		if ctx.Err() != nil {
			return
		}
		h, beta := newReflector(f.t, k, k+1, leastNormal(tensor.Complex128))
		h.apply(f.t, h.tau, k)
		f.t.set(k+1, k, beta)
		for i := k + 2; i < f.t.rows; i++ {
			f.t.set(i, k, 0)
		}
		h.applyAdjointRight(f.t)
		h.applyAdjointRight(f.u)
	}
}

// applyAdjointRight overwrites a with the product of a and the adjoint of the reflector.
func (h reflector[S]) applyAdjointRight(a matrix[S]) {
	for i := range a.rows {
		row := a.row(i)[h.k:]
		sum := row[0]
		for j, v := range h.tail {
			sum += row[j+1] * v
		}
		sum *= conj(h.tau)
		row[0] -= sum
		for j, v := range h.tail {
			row[j+1] -= sum * conj(v)
		}
	}
}

// deflates zeroes subdiagonal element (i, i-1) if it is negligible, and reports whether it did.
func (f schurForm) deflates(i int) bool {
	const epsilon = 0x1p-52
	size := func(x complex128) float64 { return math.Abs(real(x)) + math.Abs(imag(x)) }
	if size(f.t.at(i, i-1)) > epsilon*(size(f.t.at(i-1, i-1))+size(f.t.at(i, i))) {
		return false
	}
	f.t.set(i, i-1, 0)
	return true
}

// shift returns the eigenvalue of the 2×2 block that ends at hi which is closer to the last
// element. After repeated tries without success it returns another number.
func (f schurForm) shift(hi, tries int) complex128 {
	if (tries == 10 || tries == 20) && hi > 1 {
		return complex(math.Abs(real(f.t.at(hi, hi-1)))+math.Abs(real(f.t.at(hi-1, hi-2))), 0)
	}
	a, b, c, d := f.t.at(hi-1, hi-1), f.t.at(hi-1, hi), f.t.at(hi, hi-1), f.t.at(hi, hi)
	half := (a - d) / 2
	root := cmplx.Sqrt(half*half + b*c)
	one, two := (a+d)/2+root, (a+d)/2-root
	if cmplx.Abs(one-d) < cmplx.Abs(two-d) {
		return one
	}
	return two
}

// step performs one QR step on rows lo to hi. Rotations chase the bulge that the shift introduces
// down the diagonal.
func (f schurForm) step(lo, hi int, shift complex128) {
	x, y := f.t.at(lo, lo)-shift, f.t.at(lo+1, lo)
	for k := lo; k < hi; k++ {
		c, s := givens(x, y)
		from := max(k-1, lo)
		rotateRows(f.t.row(k)[from:], f.t.row(k + 1)[from:], c, s)
		rotateColumns(f.t.head(min(k+3, hi+1)), k, c, s)
		rotateColumns(f.u, k, c, s)
		if k+1 < hi {
			x, y = f.t.at(k+1, k), f.t.at(k+2, k)
		}
	}
	for k := lo; k+2 <= hi; k++ {
		f.t.set(k+2, k, 0)
	}
}

// givens returns the rotation with c*x + s*y = r and -conj(s)*x + c*y = 0.
func givens(x, y complex128) (c float64, s complex128) {
	size := math.Hypot(cmplx.Abs(x), cmplx.Abs(y))
	switch {
	case y == 0:
		return 1, 0
	case x == 0:
		return 0, cmplx.Conj(y) / complex(cmplx.Abs(y), 0)
	}
	c = cmplx.Abs(x) / size
	return c, x / complex(cmplx.Abs(x), 0) * cmplx.Conj(y) / complex(size, 0)
}

func rotateRows(a, b []complex128, c float64, s complex128) {
	for j := range a {
		x, y := a[j], b[j]
		a[j], b[j] = complex(c, 0)*x+s*y, complex(c, 0)*y-cmplx.Conj(s)*x
	}
}

// rotateColumns applies the adjoint of a rotation to columns k and k+1.
func rotateColumns(a matrix[complex128], k int, c float64, s complex128) {
	for i := range a.rows {
		row := a.row(i)
		x, y := row[k], row[k+1]
		row[k], row[k+1] = complex(c, 0)*x+cmplx.Conj(s)*y, complex(c, 0)*y-s*x
	}
}

// back returns U*m*U^H, or an unfinished value when ctx ends.
func (f schurForm) back(ctx context.Context, m matrix[complex128]) matrix[complex128] {
	return f.u.times(ctx, m).times(ctx, f.u.adjoint())
}

// vectors returns unit eigenvectors in columns, in the order of the diagonal of t. They are
// unfinished if ctx ends.
func (f schurForm) vectors(ctx context.Context) matrix[complex128] {
	n, norm := f.t.rows, 0.0
	for _, x := range f.t.a {
		norm = math.Hypot(norm, cmplx.Abs(x))
	}
	if norm == 0 {
		norm = 1
	}
	rows := newMatrix[complex128](n, n) // row k is the eigenvector of diagonal element k of t
	p := stepctx.Progress{Context: ctx}
	for k := n - 1; k >= 0 && p.Pass(k*k) == nil; k-- {
		v := rows.row(k)
		v[k] = 1
		for i := k - 1; i >= 0; i-- {
			sum := -f.t.at(i, k)
			for j := i + 1; j < k; j++ {
				sum -= f.t.at(i, j) * v[j]
			}
			gap := f.t.at(i, i) - f.t.at(k, k)
			if gap == 0 {
				gap = complex(0x1p-52*norm, 0)
			}
			v[i] = sum / gap
		}
	}
	vectors := newMatrix[complex128](n, n)
	for k := range n {
		if p.Pass(n*k) != nil {
			break
		}
		size := 0.0
		for i := range n {
			sum := complex128(0)
			for j, x := range rows.row(k)[:k+1] {
				sum += f.u.at(i, j) * x
			}
			vectors.set(i, k, sum)
			size = math.Hypot(size, cmplx.Abs(sum))
		}
		for i := range n {
			vectors.set(i, k, vectors.at(i, k)/complex(size, 0))
		}
	}
	return vectors
}
