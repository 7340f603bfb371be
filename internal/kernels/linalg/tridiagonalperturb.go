package linalg

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// perturbing solves tridiagonal systems that may be singular, as LAPACK's xLAGTF and xLAGTS do: it
// enlarges pivots that are too small to divide by. The result for a singular system depends on the
// rounding of every step, so each step is rounded to the element type.
type perturbing[S scalar] struct {
	single     bool
	eps, least float64 // distance from 1 to the next number, and smallest normal number
}

func perturbingFor[S scalar](dtype tensor.DType) perturbing[S] {
	if dtype == tensor.Float32 || dtype == tensor.Complex64 {
		return perturbing[S]{true, 0x1p-23, 0x1p-126}
	}
	return perturbing[S]{false, 0x1p-52, 0x1p-1022}
}

func (p perturbing[S]) round(x S) S {
	if !p.single {
		return x
	}
	switch v := any(x).(type) {
	case float64:
		return any(float64(float32(v))).(S)
	case complex128:
		return any(complex128(complex64(v))).(S)
	}
	return x
}

func (p perturbing[S]) real(x float64) float64 {
	if p.single {
		return float64(float32(x))
	}
	return x
}

func (p perturbing[S]) abs(x S) float64 { return p.real(abs(x)) }

func (p perturbing[S]) times(x, y S) S { return p.round(x * y) }

// minus returns x - f*y.
func (p perturbing[S]) minus(x, f, y S) S { return p.round(x - p.times(f, y)) }

// solve overwrites x with the solution of the system, and the diagonals with intermediate results.
func (p perturbing[S]) solve(super, main, sub []S, x matrix[S]) {
	n := len(main)
	if n == 0 {
		return
	}
	second := membudget.Make[S](n) // second superdiagonal, which row exchanges fill
	tolerance := p.real(p.eps * p.eliminate(super, main, second, sub, x))
	for i := n - 1; i >= 0; i-- {
		row, pivot := x.row(i), main[i]
		for j := range row {
			if i+1 < n {
				row[j] = p.minus(row[j], super[i], x.at(i+1, j))
			}
			if i+2 < n {
				row[j] = p.minus(row[j], second[i], x.at(i+2, j))
			}
		}
		inverse := p.round(1 / p.perturb(tolerance, pivot, row))
		for j := range row {
			row[j] = p.times(row[j], inverse)
		}
	}
}

// eliminate replaces main, super and second by the upper triangle of a factorization with row
// exchanges, and applies the same steps to x. It returns the largest absolute value in the
// triangle.
func (p perturbing[S]) eliminate(super, main, second, sub []S, x matrix[S]) float64 {
	n := len(main)
	if n == 1 {
		return p.abs(main[0])
	}
	largest := p.abs(main[0])
	count := func(y S) {
		if v := p.abs(y); v > largest {
			largest = v
		}
	}
	count(super[0])
	scale := p.real(p.abs(main[0]) + p.abs(super[0])) // of the row to subtract
	for k := range n - 1 {
		nextScale := p.real(p.abs(sub[k+1]) + p.abs(main[k+1]))
		if k < n-2 {
			nextScale = p.real(nextScale + p.abs(super[k+1]))
		}
		pivot := 0.0
		if main[k] != 0 {
			pivot = p.real(p.abs(main[k]) / scale)
		}
		switch {
		case sub[k+1] == 0:
			scale = nextScale
		case p.real(p.abs(sub[k+1])/nextScale) <= pivot:
			scale = nextScale
			f := p.round(sub[k+1] / main[k])
			main[k+1] = p.minus(main[k+1], f, super[k])
			for j, y := range x.row(k) {
				x.set(k+1, j, p.minus(x.at(k+1, j), f, y))
			}
		default:
			f := p.round(main[k] / sub[k+1])
			diag, above := main[k+1], super[k+1]
			main[k], main[k+1] = sub[k+1], p.minus(super[k], f, diag)
			super[k] = diag
			if k < n-2 {
				second[k], super[k+1] = above, p.times(-f, above)
			}
			for j, y := range x.row(k + 1) {
				x.set(k+1, j, p.minus(x.at(k, j), f, y))
				x.set(k, j, y)
			}
		}
		if k < n-2 {
			count(main[k])
			count(super[k])
			count(second[k])
		}
	}
	count(main[n-1])
	return largest
}

// perturb returns a pivot that row can be divided by. It treats denormal pivots as 0.
func (p perturbing[S]) perturb(by float64, pivot S, row []S) S {
	size, largest, limit := p.abs(pivot), 0.0, p.real(1/p.least)
	for _, x := range row {
		largest = max(largest, p.abs(x))
	}
	by = math.Copysign(max(by, p.least), re(pivot)) // a smaller perturbation would not grow
	for size < 1 && (size < p.least || largest > p.real(size*limit)) {
		pivot = p.round(pivot + of[S](by))
		size = p.abs(pivot)
		by *= 2
	}
	return pivot
}
