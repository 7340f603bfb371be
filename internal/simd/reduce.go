package simd

import "math"

// sumPiece is the number of elements that are added up as T: few enough that rounding errors do not pile up.
const sumPiece = 4 << 10

// reduction is a function from one slice to a number.
type reduction[T Float] struct {
	asm  levels[func(a *T, n int) T]
	pure func(a []T) T
}

// dotProduct is a function from two slices to a number.
type dotProduct[T Float] struct {
	asm levels[func(a, b *T, n int) T]
}

type reductionPair = pair[reduction[float32], reduction[float64]]

var (
	sum     = reductionOf(sumGo[float32], sumGo[float64])
	largest = reductionOf(largestGo[float32], largestGo[float64])
	least   = reductionOf(leastGo[float32], leastGo[float64])
	dot     pair[dotProduct[float32], dotProduct[float64]]
)

func reductionOf(f func(a []float32) float32, d func(a []float64) float64) reductionPair {
	return reductionPair{reduction[float32]{pure: f}, reduction[float64]{pure: d}}
}

// part reduces one piece.
func (k *reduction[T]) part(a []T) T {
	if l := Current(); l != Generic {
		return k.asm[l-1](&a[0], len(a))
	}
	return k.pure(a)
}

func reducePart[T Float](k *reductionPair, a []T) T {
	if isFloat32[T]() {
		return T(k.f32.part(as[float32](a)))
	}
	return T(k.f64.part(as[float64](a)))
}

// Sum returns the sum of a, 0 if it is empty. Pieces of 4096 elements are added up as float64, so that the error
// stays at some units in the last place of the sum of the magnitudes, however long a is.
func Sum[T Float](a []T) T { return T(Sum64(a)) }

// Sum64 is Sum before the result is rounded to T: for sums of sums.
func Sum64[T Float](a []T) float64 {
	s := 0.0
	for i := 0; i < len(a); i += sumPiece {
		s += float64(reducePart(&sum, a[i:min(len(a), i+sumPiece)]))
	}
	return s
}

// MaxOf returns the largest element of a, not a number if any is, and -Inf if a is empty.
func MaxOf[T Float](a []T) T {
	m := T(math.Inf(-1))
	for i := 0; i < len(a); i += piece {
		m = max(m, reducePart(&largest, a[i:min(len(a), i+piece)]))
	}
	return m
}

// MinOf returns the smallest element of a, not a number if any is, and +Inf if a is empty.
func MinOf[T Float](a []T) T {
	m := T(math.Inf(1))
	for i := 0; i < len(a); i += piece {
		m = min(m, reducePart(&least, a[i:min(len(a), i+piece)]))
	}
	return m
}

// Dot returns the sum of a[i]*b[i] over the elements of a. Pieces are added up as in Sum.
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
