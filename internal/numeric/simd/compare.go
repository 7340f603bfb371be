package simd

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// Predicate is a comparison. For NaN only NotEqual holds.
type Predicate int

// Predicates.
const (
	Equal Predicate = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
)

// comparison holds the assembly of the predicates, for whole vectors. The opposites of less and
// lessEqual use the same code with exchanged operands.
type comparison[T Float] struct {
	vector [4]levels[func(dst *bool, a, b *T, n int)]
	scalar [6]levels[func(dst *bool, a *T, n int, b T)]

	magnitude [3]levels[func(dst *bool, a *T, n int, b T)] // of Equal and Less
}

var comparing pair[comparison[float32], comparison[float64]]

func comparingOf[T Float]() *comparison[T] {
	if isFloat32[T]() {
		return cast[comparison[T]](&comparing.f32)
	}
	return cast[comparison[T]](&comparing.f64)
}

// Compare computes dst = a p b.
func Compare[T Float](p Predicate, dst []bool, a, b []T) {
	switch p {
	case Greater:
		p, a, b = Less, b, a
	case GreaterEqual:
		p, a, b = LessEqual, b, a
	default:
	}
	a, b = a[:len(dst)], b[:len(dst)]
	whole := 0
	if l := Current(); l != Generic {
		if f := comparingOf[T]().vector[p][l-1]; f != nil {
			whole = len(dst) &^ (vector - 1)
			for i := 0; i < whole; i += piece {
				bulk.SafePoint()
				f(&dst[i], &a[i], &b[i], min(piece, whole-i))
			}
		}
	}
	compareGo(p, dst[whole:], a[whole:], b[whole:])
}

// CompareScalar computes dst = a p b.
func CompareScalar[T Float](p Predicate, dst []bool, a []T, b T) {
	a = a[:len(dst)]
	whole := 0
	if l := Current(); l != Generic {
		if f := comparingOf[T]().scalar[p][l-1]; f != nil {
			whole = len(dst) &^ (vector - 1)
			for i := 0; i < whole; i += piece {
				bulk.SafePoint()
				f(&dst[i], &a[i], min(piece, whole-i), b)
			}
		}
	}
	compareScalarGo(p, dst[whole:], a[whole:], b)
}

// CompareMagnitude computes dst = |a| p b, for Equal and Less.
func CompareMagnitude[T Float](p Predicate, dst []bool, a []T, b T) {
	a = a[:len(dst)]
	whole := 0
	if l := Current(); l != Generic {
		f := comparingOf[T]().magnitude[p][l-1]
		whole = len(dst) &^ (vector - 1)
		for i := 0; i < whole; i += piece {
			bulk.SafePoint()
			f(&dst[i], &a[i], min(piece, whole-i), b)
		}
	}
	for i, x := range a[whole:] {
		x = max(x, -x)
		dst[whole+i] = x < b
		if p == Equal {
			dst[whole+i] = x == b
		}
	}
}

func compareGo[T Float | Int](p Predicate, dst []bool, a, b []T) {
	switch p {
	case Equal:
		for i := range dst {
			dst[i] = a[i] == b[i]
		}
	case NotEqual:
		for i := range dst {
			dst[i] = a[i] != b[i]
		}
	case Less:
		for i := range dst {
			dst[i] = a[i] < b[i]
		}
	case LessEqual:
		for i := range dst {
			dst[i] = a[i] <= b[i]
		}
	default:
	}
}

func compareScalarGo[T Float](p Predicate, dst []bool, a []T, b T) {
	switch p {
	case Equal:
		for i, x := range a {
			dst[i] = x == b
		}
	case NotEqual:
		for i, x := range a {
			dst[i] = x != b
		}
	case Less:
		for i, x := range a {
			dst[i] = x < b
		}
	case LessEqual:
		for i, x := range a {
			dst[i] = x <= b
		}
	case Greater:
		for i, x := range a {
			dst[i] = x > b
		}
	case GreaterEqual:
		for i, x := range a {
			dst[i] = x >= b
		}
	}
}

var (
	blend32 levels[func(dst, a, b *float32, cond *bool, n int)]
	blend64 levels[func(dst, a, b *float64, cond *bool, n int)]
)

// Blend sets dst to a where cond is true, and to b elsewhere.
func Blend[E uint32 | uint64](dst, a, b []E, cond []bool) {
	n := len(dst)
	a, b, cond = a[:n], b[:n], cond[:n]
	whole := 0
	if l := Current(); l != Generic && blend32[l-1] != nil {
		whole = n &^ (vector - 1)
		for i := 0; i < whole; i += piece {
			bulk.SafePoint()
			n := min(piece, whole-i)
			if unsafe.Sizeof(E(0)) == 4 {
				blend32[l-1](word[float32](&dst[i]), word[float32](&a[i]), word[float32](&b[i]), &cond[i], n)
			} else {
				blend64[l-1](word[float64](&dst[i]), word[float64](&a[i]), word[float64](&b[i]), &cond[i], n)
			}
		}
	}
	for i := whole; i < n; i++ {
		if cond[i] {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

func word[To Float, From uint32 | uint64](p *From) *To { return (*To)(unsafe.Pointer(p)) }
