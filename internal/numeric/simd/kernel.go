package simd

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// piece is the number of elements per call of an assembly function. Such a call takes a few
// microseconds.
const piece = 16 << 10

// levels holds the assembly function of each vector level: AVX2 and AVX-512. Missing functions are
// nil.
type levels[F any] [2]F

// pair holds a kernel for both element types.
type pair[K32, K64 any] struct {
	f32 K32
	f64 K64
}

// unary is a map of one slice.
type unary[T Float] struct {
	asm  levels[func(dst, src *T, n int)]
	pure func(dst, src []T)
}

func (k *unary[T]) run(dst, src []T) {
	src = src[:len(dst)]
	l := Current()
	if l == Generic || k.asm[l-1] == nil {
		k.pure(dst, src)
		return
	}
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		k.asm[l-1](&dst[i], &src[i], min(piece, len(dst)-i))
	}
}

// binary is a map of two slices.
type binary[T Float] struct {
	asm  levels[func(dst, a, b *T, n int)]
	pure func(dst, a, b []T)
}

func (k *binary[T]) run(dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	l := Current()
	if l == Generic || k.asm[l-1] == nil {
		k.pure(dst, a, b)
		return
	}
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		k.asm[l-1](&dst[i], &a[i], &b[i], min(piece, len(dst)-i))
	}
}

// scalar is a map of a slice and a number.
type scalar[T Float] struct {
	asm  levels[func(dst, a *T, n int, b T)]
	pure func(dst, a []T, b T)
}

func (k *scalar[T]) run(dst, a []T, b T) {
	a = a[:len(dst)]
	l := Current()
	if l == Generic || k.asm[l-1] == nil {
		k.pure(dst, a, b)
		return
	}
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		k.asm[l-1](&dst[i], &a[i], min(piece, len(dst)-i), b)
	}
}

type (
	unaryPair  = pair[unary[float32], unary[float64]]
	binaryPair = pair[binary[float32], binary[float64]]
	scalarPair = pair[scalar[float32], scalar[float64]]
)

func runUnary[T Float](k *unaryPair, dst, src []T) {
	if isFloat32[T]() {
		k.f32.run(as[float32](dst), as[float32](src))
	} else {
		k.f64.run(as[float64](dst), as[float64](src))
	}
}

func runBinary[T Float](k *binaryPair, dst, a, b []T) {
	if isFloat32[T]() {
		k.f32.run(as[float32](dst), as[float32](a), as[float32](b))
	} else {
		k.f64.run(as[float64](dst), as[float64](a), as[float64](b))
	}
}

func runScalar[T Float](k *scalarPair, dst, a []T, b T) {
	if isFloat32[T]() {
		k.f32.run(as[float32](dst), as[float32](a), float32(b))
	} else {
		k.f64.run(as[float64](dst), as[float64](a), float64(b))
	}
}

func isFloat32[T Float]() bool { return unsafe.Sizeof(T(0)) == 4 }

// as converts a slice to its actual element type, which the compiler knows only as a type
// parameter.
func as[To, From Float](x []From) []To { return *(*[]To)(unsafe.Pointer(&x)) }

// asPtr is like as, for pointers to arrays and function arguments.
func asPtr[To, From Float](x *From) *To { return (*To)(unsafe.Pointer(x)) }
