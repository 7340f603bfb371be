package conv

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/simd"
)

// poolKernelSet has the kernels of pooling, which take windowArgs.
type poolKernelSet struct {
	max, avg, maxGrad, avgGrad func(args *byte)
}

// The sets by level; asm_amd64.go adds those of the vector levels.
var (
	poolKernels32 = [3]poolKernelSet{portablePool[float32]()}
	poolKernels64 = [3]poolKernelSet{portablePool[float64]()}
)

// poolKernels returns the kernels for T and the level in use.
func poolKernels[T Real]() poolKernelSet {
	switch any(T(0)).(type) {
	case float32:
		return poolKernels32[simd.Current()]
	case float64:
		return poolKernels64[simd.Current()]
	}
	return portablePool[T]()
}

func portablePool[T Real]() poolKernelSet {
	wrap := func(pixel func(w windowOf[T])) func(args *byte) {
		return func(args *byte) {
			a := (*windowArgs)(unsafe.Pointer(args))
			for i := range a.pixels {
				pixel(windowOf[T]{a, i})
			}
		}
	}
	return poolKernelSet{
		max: wrap(maxGo[T]), avg: wrap(avgGo[T]), maxGrad: wrap(maxGradGo[T]), avgGrad: wrap(avgGradGo[T]),
	}
}

// windowOf is the window of one of a call's pixels.
type windowOf[T Real] struct {
	*windowArgs
	pixel int
}

func channels[T Real](base unsafe.Pointer, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(base, offset)), n)
}

func (w windowOf[T]) out(y unsafe.Pointer) []T {
	return channels[T](y, w.pixel*w.stepY, w.windowArgs.channels)
}

// in is element (a, b) of the window, for x or dx.
func (w windowOf[T]) in(x unsafe.Pointer, a, b int) []T {
	return channels[T](x, w.pixel*w.stepX+a*w.row+b*w.stepY, w.windowArgs.channels)
}

func (w windowOf[T]) factor() T { return *(*T)(unsafe.Pointer(&w.scale)) }

// each calls f for the elements of the window in order.
func (w windowOf[T]) each(x unsafe.Pointer, f func(x []T)) {
	for a := range w.height {
		for b := range w.width {
			f(w.in(x, a, b))
		}
	}
}

func maxGo[T Real](w windowOf[T]) {
	y := w.out(w.y)
	lowest := lowest[T]()
	for i := range y {
		y[i] = lowest
	}
	w.each(w.x, func(x []T) {
		for i, v := range x {
			if v > y[i] {
				y[i] = v
			}
		}
	})
}

func avgGo[T Real](w windowOf[T]) {
	y := w.out(w.y)
	clear(y)
	w.each(w.x, func(x []T) {
		for i, v := range x {
			y[i] += v
		}
	})
	for i := range y {
		y[i] /= w.factor()
	}
}

func avgGradGo[T Real](w windowOf[T]) {
	dy := w.out(w.dy)
	w.each(w.dx, func(dx []T) {
		for i, v := range dy {
			dx[i] += v * w.factor()
		}
	})
}

func maxGradGo[T Real](w windowOf[T]) {
	y, dy := w.out(w.y), w.out(w.dy)
	for i := range y {
		at := w.in(w.dx, 0, 0)
	search:
		for a := range w.height {
			for b := range w.width {
				if w.in(w.x, a, b)[i] == y[i] {
					at = w.in(w.dx, a, b)
					break search
				}
			}
		}
		at[i] += dy[i]
	}
}

// lowest is the lowest finite number of T.
func lowest[T Real]() T {
	bits := 8 * unsafe.Sizeof(T(0))
	switch any(T(0)).(type) {
	case float32:
		low := float64(-math.MaxFloat32)
		return T(low)
	case float64:
		low := -math.MaxFloat64
		return T(low)
	case uint8, uint16, uint32, uint64:
		return 0
	}
	one := int64(-1)
	return T(one << (bits - 1))
}
