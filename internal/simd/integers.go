package simd

import "unsafe"

// Int is an integer type with vector code.
type Int interface{ int32 | int64 }

// integer has the assembly for one size, for whole vectors; what is nil has none.
type integer[T Int] struct {
	add, sub, mul, max, min levels[func(dst, a, b *T, n int)]
	compare                 [4]levels[func(dst *bool, a, b *T, n int)] // as in comparison
}

var (
	integers32 integer[int32]
	integers64 integer[int64]
)

func integersOf[T Int]() *integer[T] {
	if unsafe.Sizeof(T(0)) == 4 {
		return cast[integer[T]](&integers32)
	}
	return cast[integer[T]](&integers64)
}

// runInts maps what it can and returns how much that is.
func runInts[R any, T Int](asm *levels[func(dst *R, a, b *T, n int)], dst []R, a, b []T) int {
	l := Current()
	if l == Generic || asm[l-1] == nil {
		return 0
	}
	whole := len(dst) &^ (vector - 1)
	for i := 0; i < whole; i += piece {
		asm[l-1](&dst[i], &a[i], &b[i], min(piece, whole-i))
	}
	return whole
}

// AddInts: dst = a + b.
func AddInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().add, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// SubInts: dst = a - b.
func SubInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().sub, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] - b[i]
	}
}

// MulInts: dst = a * b.
func MulInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().mul, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] * b[i]
	}
}

// MaxInts: dst = max(a, b).
func MaxInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().max, dst, a, b); i < len(dst); i++ {
		dst[i] = max(a[i], b[i])
	}
}

// MinInts: dst = min(a, b).
func MinInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().min, dst, a, b); i < len(dst); i++ {
		dst[i] = min(a[i], b[i])
	}
}

// CompareInts: dst = a p b.
func CompareInts[T Int](p Predicate, dst []bool, a, b []T) {
	switch p {
	case Greater:
		p, a, b = Less, b, a
	case GreaterEqual:
		p, a, b = LessEqual, b, a
	default:
	}
	a, b = a[:len(dst)], b[:len(dst)]
	whole := runInts(&integersOf[T]().compare[p], dst, a, b)
	compareGo(p, dst[whole:], a[whole:], b[whole:])
}
