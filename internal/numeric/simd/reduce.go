package simd

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// sumPiece is the number of elements that are summed in type T. It is small enough to limit
// rounding errors.
const sumPiece = 4 << 10

// reduction reduces each row to a number.
type reduction[T Float] struct {
	asm  levels[func(dst, a *T, rows, cols int)]
	pure func(a []T) T
}

// dotProduct reduces two slices to a number.
type dotProduct[T Float] struct {
	asm levels[func(a, b *T, n int) T]
}

type reductionPair = pair[reduction[float32], reduction[float64]]

var (
	sum     = reductionOf(sumGo[float32], sumGo[float64])
	product = reductionOf(productGo[float32], productGo[float64])
	largest = reductionOf(largestGo[float32], largestGo[float64])
	least   = reductionOf(leastGo[float32], leastGo[float64])
	dot     pair[dotProduct[float32], dotProduct[float64]]
)

func reductionOf(f func(a []float32) float32, d func(a []float64) float64) reductionPair {
	return reductionPair{reduction[float32]{pure: f}, reduction[float64]{pure: d}}
}

// part reduces one piece.
func (k *reduction[T]) part(a []T) (result T) {
	if l := Current(); l != Generic {
		k.asm[l-1](&result, &a[0], 1, len(a))
		return result
	}
	return k.pure(a)
}

func reductionFor[T Float](k *reductionPair) *reduction[T] {
	if isFloat32[T]() {
		return cast[reduction[T]](&k.f32)
	}
	return cast[reduction[T]](&k.f64)
}

// reduceRows reduces the rows of x, which have cols elements. It uses whole for rows longer than
// one piece.
func reduceRows[T Float](k *reductionPair, dst, x []T, cols int, whole func(a []T) T) {
	l := Current()
	if l == Generic || cols > sumPiece {
		for i := range dst {
			dst[i] = whole(x[i*cols:][:cols])
		}
		return
	}
	f := reductionFor[T](k).asm[l-1]
	x = x[:len(dst)*cols]
	forRows(len(dst), cols, func(row, rows, _, _ int) { f(&dst[row], &x[row*cols], rows, cols) })
}

// SumRows sets dst[i] to Sum of row i of x. Rows have cols >= 1 elements.
func SumRows[T Float](dst, x []T, cols int) { reduceRows(&sum, dst, x, cols, Sum[T]) }

// MaxRows sets dst[i] to MaxOf of row i of x. Rows have cols >= 1 elements.
func MaxRows[T Float](dst, x []T, cols int) { reduceRows(&largest, dst, x, cols, MaxOf[T]) }

// MinRows sets dst[i] to MinOf of row i of x. Rows have cols >= 1 elements.
func MinRows[T Float](dst, x []T, cols int) { reduceRows(&least, dst, x, cols, MinOf[T]) }

// ProdRows sets dst[i] to Prod of row i of x. Rows have cols >= 1 elements.
func ProdRows[T Float](dst, x []T, cols int) { reduceRows(&product, dst, x, cols, Prod[T]) }

// Prod returns the product of a, or 1 if a is empty.
func Prod[T Float](a []T) T {
	p := T(1)
	for i := 0; i < len(a); i += piece {
		bulk.SafePoint()
		p *= reducePart(&product, a[i:min(len(a), i+piece)])
	}
	return p
}

func reducePart[T Float](k *reductionPair, a []T) T {
	if isFloat32[T]() {
		return T(k.f32.part(as[float32](a)))
	}
	return T(k.f64.part(as[float64](a)))
}

// Sum returns the sum of a, or 0 if a is empty. It sums pieces of 4096 elements and adds these sums
// in float64. The error therefore stays within a few ULP of the sum of the magnitudes for any
// length.
func Sum[T Float](a []T) T { return T(Sum64(a)) }

// Sum64 is Sum before the result is rounded to T. Use it for sums of sums.
func Sum64[T Float](a []T) float64 {
	s := 0.0
	if l := Current(); l != Generic && len(a) > sumPiece {
		var parts [16]T // of pieces that share a call
		f := reductionFor[T](&sum).asm[l-1]
		for len(a) >= sumPiece {
			n := min(len(parts), len(a)/sumPiece)
			f(&parts[0], &a[0], n, sumPiece)
			for _, x := range parts[:n] {
				s += float64(x)
			}
			a = a[n*sumPiece:]
		}
	}
	for i := 0; i < len(a); i += sumPiece {
		s += float64(reducePart(&sum, a[i:min(len(a), i+sumPiece)]))
	}
	return s
}

// MaxOf returns the largest element of a, NaN if any element is NaN, and -Inf if a is empty.
func MaxOf[T Float](a []T) T {
	m := T(math.Inf(-1))
	for i := 0; i < len(a); i += piece {
		bulk.SafePoint()
		m = max(m, reducePart(&largest, a[i:min(len(a), i+piece)]))
	}
	return m
}

// MinOf returns the smallest element of a, NaN if any element is NaN, and +Inf if a is empty.
func MinOf[T Float](a []T) T {
	m := T(math.Inf(1))
	for i := 0; i < len(a); i += piece {
		bulk.SafePoint()
		m = min(m, reducePart(&least, a[i:min(len(a), i+piece)]))
	}
	return m
}

// Dot returns the sum of a[i]*b[i] over the elements of a. It sums pieces like Sum.
func Dot[T Float](a, b []T) T {
	b = b[:len(a)]
	s := 0.0
	for i := 0; i < len(a); i += sumPiece {
		end := min(len(a), i+sumPiece)
		s += float64(dotPart(a[i:end], b[i:end]))
	}
	return T(s)
}

func dotPart[T Float](a, b []T) T {
	l := Current()
	switch {
	case l == Generic:
		return dotGo(a, b)
	case isFloat32[T]():
		return T(dot.f32.asm[l-1](asPtr[float32](&a[0]), asPtr[float32](&b[0]), len(a)))
	}
	return T(dot.f64.asm[l-1](asPtr[float64](&a[0]), asPtr[float64](&b[0]), len(a)))
}

func sumGo[T Float](a []T) T {
	var s float64
	for _, x := range a {
		s += float64(x)
	}
	return T(s)
}

func productGo[T Float](a []T) T {
	p := T(1)
	for _, x := range a {
		p *= x
	}
	return p
}

func dotGo[T Float](a, b []T) T {
	var s float64
	for i, x := range a {
		s += float64(x) * float64(b[i])
	}
	return T(s)
}

func largestGo[T Float](a []T) T {
	m := a[0]
	for _, x := range a[1:] {
		m = max(m, x)
	}
	return m
}

func leastGo[T Float](a []T) T {
	m := a[0]
	for _, x := range a[1:] {
		m = min(m, x)
	}
	return m
}
