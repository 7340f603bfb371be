package gemm

import (
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/internal/tile"
)

// scratch is the memory that one goroutine needs for a block. It is reused.
type scratch[T simd.Float] struct {
	args       tile.Args
	bufA, bufB []T
}

var scratches32, scratches64, products32, products64 sync.Pool

func pick[T simd.Float](single, double *sync.Pool) *sync.Pool {
	if unsafe.Sizeof(T(0)) == 4 {
		return single
	}
	return double
}

func scratchOf[T simd.Float]() *scratch[T] {
	if s, ok := pick[T](&scratches32, &scratches64).Get().(*scratch[T]); ok {
		return s
	}
	return new(scratch[T])
}

func (s *scratch[T]) release() {
	s.args = tile.Args{} // keep no caller's memory alive
	pick[T](&scratches32, &scratches64).Put(s)
}

func productOf[T simd.Float]() *product[T] {
	if p, ok := pick[T](&products32, &products64).Get().(*product[T]); ok {
		return p
	}
	return new(product[T])
}

func (p *product[T]) release() {
	*p = product[T]{}
	pick[T](&products32, &products64).Put(p)
}

// grow makes *s hold at least n elements, from a boundary of 64 bytes on.
func grow[T simd.Float](s *[]T, n int) {
	if len(*s) >= n {
		return
	}
	*s = Aligned[T](n)
}

// Aligned returns n zeros that start on a boundary of 64 bytes.
func Aligned[T simd.Float](n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	s := make([]T, n+64/size)
	off := -int(uintptr(unsafe.Pointer(&s[0]))) & 63 / size
	return s[off : off+n : off+n]
}
