package channelwise

import (
	"sync"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Scratch memory for images, by element type. Allocating it would cost more than the work done on
// it.
var scratch32, scratch64 sync.Pool

func scratchPool[T simd.Float]() *sync.Pool {
	if size[T]() == 4 {
		return &scratch32
	}
	return &scratch64
}

// getScratch returns n elements with arbitrary values. The caller returns them with putScratch.
func getScratch[T simd.Float](n int) *[]T {
	s, ok := scratchPool[T]().Get().(*[]T)
	if !ok {
		s = new([]T)
	}
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
	return s
}

func putScratch[T simd.Float](s *[]T) { scratchPool[T]().Put(s) }
