package channelwise

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/simd"
)

// tapKernelSet holds the kernels of depthwise convolution, which take tapArgs.
type tapKernelSet struct {
	correlate func(args *byte) // y = the sum over each window of x times f
	products  func(args *byte) // f += the sum over the outputs of y times their windows of x
	// The same for windows of some widths at distance 1 without gaps.
	slidCorrelate, slidProducts map[int]func(args *byte)
}

// The sets, indexed by level. asm_amd64.go adds those of the vector levels.
var (
	tapKernels32 = [3]tapKernelSet{{correlate: correlateGo[float32], products: productsGo[float32]}}
	tapKernels64 = [3]tapKernelSet{{correlate: correlateGo[float64], products: productsGo[float64]}}
)

func tapKernels[T simd.Float]() tapKernelSet {
	if size[T]() == 4 {
		return tapKernels32[simd.Current()]
	}
	return tapKernels64[simd.Current()]
}

// eachTap calls visit for all outputs and elements of their windows.
func eachTap[T simd.Float](args *byte, visit func(x, f, y []T, first bool)) {
	a := (*tapArgs)(unsafe.Pointer(args))
	for i := range a.lines * a.pixels {
		line, pixel := i/a.pixels, i%a.pixels
		atX := line*(a.pixels*a.stepX+a.skipX) + pixel*a.stepX
		y := channels[T](a.y, line*(a.pixels*a.stepY+a.skipY)+pixel*a.stepY, a.channels)
		for row := range a.height {
			for col := range a.width {
				x := channels[T](a.x, atX+row*a.rowX+col*a.colX, a.channels)
				visit(x, channels[T](a.f, row*a.rowF+col*a.colF, a.channels), y, row == 0 && col == 0)
			}
		}
	}
}

func correlateGo[T simd.Float](args *byte) {
	eachTap(args, func(x, f, y []T, first bool) {
		if first {
			clear(y)
		}
		for c, v := range x {
			y[c] += v * f[c]
		}
	})
}

func productsGo[T simd.Float](args *byte) {
	eachTap(args, func(x, f, y []T, _ bool) {
		for c, v := range x {
			f[c] += v * y[c]
		}
	})
}
