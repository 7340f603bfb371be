package conv

import (
	"sync"
	"unsafe"

	"github.com/weft-ml/weft/internal/gemm"
	"github.com/weft-ml/weft/internal/simd"
	"github.com/weft-ml/weft/internal/tile"
)

// scratch is the memory that one goroutine needs for its part of a convolution. It is reused.
type scratch[T simd.Float] struct {
	args            tile.Args
	buf, panel, sum []T
}

// image returns n elements, with any content.
func (s *scratch[T]) image(n int) []T { return room(&s.buf, n) }

// room returns the first n elements of *s, which it makes larger if need be.
func room[T simd.Float](s *[]T, n int) []T {
	if len(*s) < n {
		*s = gemm.Aligned[T](n)
	}
	return (*s)[:n]
}

var (
	scratches32, scratches64             sync.Pool
	correlations32, correlations64       sync.Pool
	filterGradients32, filterGradients64 sync.Pool
)

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

func correlationOf[T simd.Float]() *correlation[T] {
	if c, ok := pick[T](&correlations32, &correlations64).Get().(*correlation[T]); ok {
		return c
	}
	return new(correlation[T])
}

func (c *correlation[T]) release() {
	*c = correlation[T]{panels: c.panels[:0], filter: c.filter}
	pick[T](&correlations32, &correlations64).Put(c)
}

func filterGradientOf[T simd.Float]() *filterGradient[T] {
	if g, ok := pick[T](&filterGradients32, &filterGradients64).Get().(*filterGradient[T]); ok {
		return g
	}
	return new(filterGradient[T])
}

func (g *filterGradient[T]) release() {
	clear(g.sums)
	clear(g.extra)
	*g = filterGradient[T]{sums: g.sums[:0], extra: g.extra[:0]}
	pick[T](&filterGradients32, &filterGradients64).Put(g)
}
