package simd

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// Int is the constraint of the integer types with vector code.
type Int interface{ int32 | int64 }

// integer holds the assembly for one size, for whole vectors. Functions without assembly are nil.
type integer[T Int] struct {
	add, sub, mul, max, min levels[func(dst, a, b *T, n int)]
	sumRows                 levels[func(dst, a *T, rows, cols int)]
	maxRows, minRows        levels[func(dst, a *T, rows, cols int)]
	compare                 [4]levels[func(dst *bool, a, b *T, n int)] // indexed like comparison
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

// runInts maps whole vectors with the assembly and returns the number of mapped elements.
func runInts[R any, T Int](asm *levels[func(dst *R, a, b *T, n int)], dst []R, a, b []T) int {
	l := Current()
	if l == Generic || asm[l-1] == nil {
		return 0
	}
	whole := len(dst) &^ (vector - 1)
	for i := 0; i < whole; i += piece {
		bulk.SafePoint()
		asm[l-1](&dst[i], &a[i], &b[i], min(piece, whole-i))
	}
	return whole
}

// AddInts computes dst = a + b.
func AddInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().add, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// SubInts computes dst = a - b.
func SubInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().sub, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] - b[i]
	}
}

// MulInts computes dst = a * b.
func MulInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().mul, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] * b[i]
	}
}

// SumIntRows sets dst[i] to the sum of row i of x. Rows have cols >= 1 elements.
func SumIntRows[T Int](dst, x []T, cols int) {
	intRows(&integersOf[T]().sumRows, dst, x, cols, func(a, b T) T { return a + b })
}

// MaxIntRows sets dst[i] to the largest element of row i of x. Rows have cols >= 1 elements.
func MaxIntRows[T Int](dst, x []T, cols int) {
	intRows(&integersOf[T]().maxRows, dst, x, cols, func(a, b T) T { return max(a, b) })
}

// MinIntRows sets dst[i] to the smallest element of row i of x. Rows have cols >= 1 elements.
func MinIntRows[T Int](dst, x []T, cols int) {
	intRows(&integersOf[T]().minRows, dst, x, cols, func(a, b T) T { return min(a, b) })
}

// intRows reduces rows, in pieces if they are long.
func intRows[T Int](asm *levels[func(dst, a *T, rows, cols int)], dst, x []T, cols int, op func(a, b T) T) {
	x = x[:len(dst)*cols]
	l := Current()
	if l == Generic || asm[l-1] == nil {
		for i := range dst {
			v := x[i*cols]
			for _, w := range x[i*cols+1 : (i+1)*cols] {
				v = op(v, w)
			}
			dst[i] = v
		}
		return
	}
	if cols <= piece {
		forRows(len(dst), cols, func(row, rows, _, _ int) { asm[l-1](&dst[row], &x[row*cols], rows, cols) })
		return
	}
	for i := range dst {
		for lo := 0; lo < cols; lo += piece {
			bulk.SafePoint()
			var v T
			asm[l-1](&v, &x[i*cols+lo], 1, min(piece, cols-lo))
			if lo > 0 {
				v = op(dst[i], v)
			}
			dst[i] = v
		}
	}
}

// MaxInts computes dst = max(a, b).
func MaxInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().max, dst, a, b); i < len(dst); i++ {
		dst[i] = max(a[i], b[i])
	}
}

// MinInts computes dst = min(a, b).
func MinInts[T Int](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&integersOf[T]().min, dst, a, b); i < len(dst); i++ {
		dst[i] = min(a[i], b[i])
	}
}

// divisions holds the assembly for divisions of int32.
var divisions struct {
	quotients, floorQuotients, remainders, floorRemainders levels[func(dst, a, b *int32, n int)]
}

// Quotients computes dst = a / b, truncated. No element of b may be 0, here and in the functions
// below. A quotient that overflows wraps around.
func Quotients(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&divisions.quotients, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] / b[i]
	}
}

// FloorQuotients computes dst = a / b, rounded down.
func FloorQuotients(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&divisions.floorQuotients, dst, a, b); i < len(dst); i++ {
		q, r := a[i]/b[i], a[i]%b[i]
		if r != 0 && r^b[i] < 0 {
			q--
		}
		dst[i] = q
	}
}

// Remainders sets dst to the remainder of the truncated division a / b, with the sign of a.
func Remainders(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&divisions.remainders, dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] % b[i]
	}
}

// FloorRemainders sets dst to the remainder of the division a / b rounded down, with the sign of b.
func FloorRemainders(dst, a, b []int32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := runInts(&divisions.floorRemainders, dst, a, b); i < len(dst); i++ {
		r := a[i] % b[i]
		if r != 0 && r^b[i] < 0 {
			r += b[i]
		}
		dst[i] = r
	}
}

// CompareInts computes dst = a p b.
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
