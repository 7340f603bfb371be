package channelwise

import (
	"sync"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// The scratch for images, by element type. New memory costs more than what is done with it.
var scratch32, scratch64 sync.Pool

func scratchPool[T simd.Float]() *sync.Pool {
	if size[T]() == 4 {
		return &scratch32
	}
	return &scratch64
}

// borrow returns n elements of any values, until giveBack.
func borrow[T simd.Float](n int) *[]T {
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

func giveBack[T simd.Float](s *[]T) { scratchPool[T]().Put(s) }
