package channelwise

import (
	"math"
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// poolKernelSet holds the pooling kernels, which take poolArgs.
type poolKernelSet struct {
	max, avg, maxGrad, nearGrad, avgGrad func(args *byte)
}

// The sets, indexed by level. asm_amd64.go adds those of the vector levels.
var (
	poolKernels32 = [3]poolKernelSet{portablePool[float32]()}
	poolKernels64 = [3]poolKernelSet{portablePool[float64]()}
)

// poolKernels returns the kernels for T and the current level.
func poolKernels[T simd.Float]() poolKernelSet {
	if size[T]() == 4 {
		return poolKernels32[simd.Current()]
	}
	return poolKernels64[simd.Current()]
}

func portablePool[T simd.Float]() poolKernelSet {
	wrap := func(pixel func(w windowOf[T])) func(args *byte) {
		return func(args *byte) {
			a := (*poolArgs)(unsafe.Pointer(args))
			for line := range a.lines {
				for i := range a.pixels {
					pixel(windowOf[T]{a, line*(a.pixels*a.stepX+a.skipX) + i*a.stepX, line*(a.pixels*a.stepY+a.skipY) + i*a.stepY})
				}
			}
		}
	}
	return poolKernelSet{
		max: wrap(maxGo[T]), avg: wrap(avgGo[T]), maxGrad: wrap(maxGradGo[T]), nearGrad: wrap(nearGradGo[T]),
		avgGrad: wrap(avgGradGo[T]),
	}
}

// windowOf is the window of a pixel of a call: its distances from the first pixel in x and y.
type windowOf[T simd.Float] struct {
	*poolArgs
	atX, atY int
}

func channels[T simd.Float](base unsafe.Pointer, offset, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(base, offset)), n)
}

func (w windowOf[T]) out(y unsafe.Pointer) []T {
	return channels[T](y, w.atY, w.poolArgs.channels)
}

func (w windowOf[T]) factor() T { return *(*T)(unsafe.Pointer(&w.scale)) }

// each calls f for the window elements of x in order, with their distance from the first element of
// the call.
func (w windowOf[T]) each(f func(offset int)) {
	at := w.atX
	for range w.depth {
		for range w.height {
			for b := range w.width {
				f(at + b*w.stepY)
			}
			at += w.row
		}
		at += w.plane
	}
}

func (w windowOf[T]) in(x unsafe.Pointer, offset int) []T {
	return channels[T](x, offset, w.poolArgs.channels)
}

func maxGo[T simd.Float](w windowOf[T]) {
	y := w.out(w.y)
	lowest := lowest[T]()
	for i := range y {
		y[i] = lowest
	}
	w.each(func(at int) {
		for i, v := range w.in(w.x, at) {
			if v > y[i] {
				y[i] = v
			}
		}
	})
}

func avgGo[T simd.Float](w windowOf[T]) {
	y := w.out(w.y)
	clear(y)
	w.each(func(at int) {
		for i, v := range w.in(w.x, at) {
			y[i] += v
		}
	})
	for i := range y {
		y[i] /= w.factor()
	}
}

func avgGradGo[T simd.Float](w windowOf[T]) {
	dy := w.out(w.dy)
	w.each(func(at int) {
		dx := w.in(w.dx, at)
		for i, v := range dy {
			dx[i] += v * w.factor()
		}
	})
}

func nearGradGo[T simd.Float](w windowOf[T]) {
	y, dy := w.out(w.y), w.out(w.dy)
	w.each(func(at int) {
		x, dx := w.in(w.x, at), w.in(w.dx, at)
		for i, v := range dy {
			if d := x[i] - y[i]; d < nearness && -d < nearness {
				dx[i] += v
			}
		}
	})
}

// nearness is the distance of NearPoolGrad.
const nearness = 1e-5

func maxGradGo[T simd.Float](w windowOf[T]) {
	y, dy := w.out(w.y), w.out(w.dy)
	for i := range y {
		first, found := w.atX, false
		w.each(func(at int) {
			if !found && w.in(w.x, at)[i] == y[i] {
				first, found = at, true
			}
		})
		w.in(w.dx, first)[i] += dy[i]
	}
}

// lowest returns the lowest finite number of T.
func lowest[T simd.Float]() T {
	if size[T]() == 4 {
		low := float64(-math.MaxFloat32)
		return T(low)
	}
	low := -math.MaxFloat64
	return T(low)
}
