package microkernel

import (
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Scratch is the memory that one goroutine needs for a block of work: a call, and copies of
// operands or results. It is reused.
type Scratch[T simd.Float] struct {
	Args             Args
	BufA, BufB, BufC []T // made long enough by Room
}

var scratches Pool

// ScratchOf returns scratch memory. Whoever takes it releases it.
func ScratchOf[T simd.Float]() *Scratch[T] { return Take[Scratch[T], T](&scratches) }

// Release gives s back.
func (s *Scratch[T]) Release() {
	s.Args = Args{} // keep no caller's memory alive
	Put[Scratch[T], T](&scratches, s)
}

// Room returns the first n elements of *s, with any content; it makes *s longer if need be.
func Room[T simd.Float](s *[]T, n int) []T {
	if len(*s) < n {
		*s = Aligned[T](n)
	}
	return (*s)[:n]
}

// Aligned returns n zeros that start on a boundary of 64 bytes.
func Aligned[T simd.Float](n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	s := make([]T, n+64/size)
	off := -int(uintptr(unsafe.Pointer(&s[0]))) & 63 / size
	return s[off : off+n : off+n]
}

// Pool holds values for reuse whose type V is generic in the type T of elements: those for float32
// and for float64 apart.
type Pool struct{ single, double sync.Pool }

func of[T simd.Float](p *Pool) *sync.Pool {
	if unsafe.Sizeof(T(0)) == 4 {
		return &p.single
	}
	return &p.double
}

// Take returns a value of the pool, or a new one.
func Take[V any, T simd.Float](p *Pool) *V {
	if v, ok := of[T](p).Get().(*V); ok {
		return v
	}
	return new(V)
}

// Put gives a value back.
func Put[V any, T simd.Float](p *Pool, v *V) { of[T](p).Put(v) }
