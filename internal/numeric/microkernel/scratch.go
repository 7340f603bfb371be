package microkernel

import (
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Scratch is the memory that one goroutine needs for a block of work: the arguments of a call, and
// copies of operands or results. It is pooled.
type Scratch[T simd.Float] struct {
	Args             Args
	BufA, BufB, BufC []T // made long enough by Resize
}

var scratches Pool

// ScratchOf returns scratch memory. The caller must release it.
func ScratchOf[T simd.Float]() *Scratch[T] { return Take[Scratch[T], T](&scratches) }

// Release returns s to the pool.
func (s *Scratch[T]) Release() {
	s.Args = Args{} // do not keep the caller's memory alive
	Put[Scratch[T], T](&scratches, s)
}

// Resize returns the first n elements of *s, with arbitrary values. It reallocates *s if it is too
// short.
func Resize[T simd.Float](s *[]T, n int) []T {
	if len(*s) < n {
		*s = Aligned[T](n)
	}
	return (*s)[:n]
}

// Aligned returns n zeros, aligned to 64 bytes.
func Aligned[T simd.Float](n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	s := make([]T, n+64/size)
	off := -int(uintptr(unsafe.Pointer(&s[0]))) & 63 / size
	return s[off : off+n : off+n]
}

// Pool is a free list of values whose type V is generic in the element type T. It separates the
// values for float32 and for float64.
type Pool struct{ single, double sync.Pool }

func of[T simd.Float](p *Pool) *sync.Pool {
	if unsafe.Sizeof(T(0)) == 4 {
		return &p.single
	}
	return &p.double
}

// Take returns a value from the pool, or a new one.
func Take[V any, T simd.Float](p *Pool) *V {
	if v, ok := of[T](p).Get().(*V); ok {
		return v
	}
	return new(V)
}

// Put returns a value to the pool.
func Put[V any, T simd.Float](p *Pool, v *V) { of[T](p).Put(v) }
