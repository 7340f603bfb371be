package simd

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/bulk"
)

// linear holds the kernels that combine slices with factors, and the simplest case: filling.
type linear[T Float] struct {
	fill  levels[func(dst *T, n int, v T)]
	clamp levels[func(dst, src *T, n int, low, high T)]
	add4  levels[func(dst, a, b, c, d *T, n int)]

	leaky                     levels[func(dst, x, by *T, n int, alpha T)]
	selectLess, selectGreater levels[func(dst, x, a, b *T, n int, bound T)]
	axpy                      levels[func(y, x *T, n int, a T)]
	axpby                     levels[func(dst, x, y *T, n int, a, b T)]
}

var linears pair[linear[float32], linear[float64]]

// linearOf returns the kernels for T.
func linearOf[T Float]() *linear[T] {
	if isFloat32[T]() {
		return cast[linear[T]](&linears.f32)
	}
	return cast[linear[T]](&linears.f64)
}

// Fill sets all elements of dst to v.
func Fill[E uint32 | uint64](dst []E, v E) {
	l := Current()
	if l == Generic || linears.f32.fill[l-1] == nil {
		for i := range dst {
			dst[i] = v
		}
		return
	}
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		n := min(piece, len(dst)-i)
		if unsafe.Sizeof(v) == 4 {
			linears.f32.fill[l-1](word[float32](&dst[i]), n, math.Float32frombits(uint32(v)))
		} else {
			linears.f64.fill[l-1](word[float64](&dst[i]), n, math.Float64frombits(uint64(v)))
		}
	}
}

// Clamp computes dst = max(min(src, high), low). A bound that is NaN is ignored.
func Clamp[T Float](dst, src []T, low, high T) {
	src = src[:len(dst)]
	l := Current()
	if l == Generic {
		for i, x := range src {
			if high < x {
				x = high
			}
			if low > x {
				x = low
			}
			dst[i] = x
		}
		return
	}
	f := linearOf[T]().clamp[l-1]
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		f(&dst[i], &src[i], min(piece, len(dst)-i), low, high)
	}
}

// Leaky sets dst to x where by > 0, and to alpha*x elsewhere.
func Leaky[T Float](dst, x, by []T, alpha T) {
	x, by = x[:len(dst)], by[:len(dst)]
	l := Current()
	if l == Generic {
		for i, v := range x {
			if !(by[i] > 0) {
				v *= alpha
			}
			dst[i] = v
		}
		return
	}
	f := linearOf[T]().leaky[l-1]
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		f(&dst[i], &x[i], &by[i], min(piece, len(dst)-i), alpha)
	}
}

// SelectLess sets dst to a where x < bound, and to b elsewhere.
func SelectLess[T Float](dst, x []T, bound T, a, b []T) {
	selectBy(&linearOf[T]().selectLess, dst, x, bound, a, b, func(x T) bool { return x < bound })
}

// SelectGreater sets dst to a where x > bound, and to b elsewhere.
func SelectGreater[T Float](dst, x []T, bound T, a, b []T) {
	selectBy(&linearOf[T]().selectGreater, dst, x, bound, a, b, func(x T) bool { return x > bound })
}

func selectBy[T Float](asm *levels[func(dst, x, a, b *T, n int, bound T)], dst, x []T, bound T, a, b []T, first func(x T) bool) {
	n := len(dst)
	x, a, b = x[:n], a[:n], b[:n]
	if l := Current(); l != Generic {
		for i := 0; i < n; i += piece {
			bulk.SafePoint()
			asm[l-1](&dst[i], &x[i], &a[i], &b[i], min(piece, n-i), bound)
		}
		return
	}
	for i, v := range x {
		if first(v) {
			dst[i] = a[i]
		} else {
			dst[i] = b[i]
		}
	}
}

// Add4 computes dst = a + b + c + d, from left to right.
func Add4[T Float](dst, a, b, c, d []T) {
	n := len(dst)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	l := Current()
	if l == Generic {
		for i := range dst {
			dst[i] = a[i] + b[i] + c[i] + d[i]
		}
		return
	}
	f := linearOf[T]().add4[l-1]
	for i := 0; i < n; i += piece {
		bulk.SafePoint()
		f(&dst[i], &a[i], &b[i], &c[i], &d[i], min(piece, n-i))
	}
}

// Axpy computes y += a*x.
func Axpy[T Float](y []T, a T, x []T) {
	x = x[:len(y)]
	l := Current()
	if l == Generic {
		for i, v := range x {
			y[i] += a * v
		}
		return
	}
	k := linearOf[T]()
	for i := 0; i < len(y); i += piece {
		bulk.SafePoint()
		k.axpy[l-1](&y[i], &x[i], min(piece, len(y)-i), a)
	}
}

// Axpby computes dst = a*x + b*y.
func Axpby[T Float](dst []T, a T, x []T, b T, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	l := Current()
	if l == Generic {
		for i, v := range x {
			dst[i] = a*v + b*y[i]
		}
		return
	}
	k := linearOf[T]()
	for i := 0; i < len(dst); i += piece {
		bulk.SafePoint()
		k.axpby[l-1](&dst[i], &x[i], &y[i], min(piece, len(dst)-i), a, b)
	}
}
