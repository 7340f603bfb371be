package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
)

// The functions below compute with the processor's bfloat16 instructions, whose results are
// float32. If there are no such instructions, or if they would not be faster, a function does
// nothing and reports false. The caller then widens the operands.

// ForwardBFloat16 is like Forward, for bfloat16. It pairs neighbouring channels of the input.
func ForwardBFloat16[H ~uint16](s *Shape, y []float32, x, f []H) bool {
	kern := microkernel.Pairs()
	if kern == nil || s.InC%2 != 0 || s.groups() > 1 || s.outputs() == 0 || s.patch() == 0 || s.OutW < narrow {
		return false
	}
	s.check(len(x), len(f), len(y))
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	half := *s
	half.InC /= 2
	rows, data := half.patch(), bits(f)
	filter := microkernel.Resize(&m.BufB, rows*s.OutC)
	for i := range rows {
		microkernel.PairRows(filter[i*s.OutC:][:s.OutC], data[2*i*s.OutC:], data[(2*i+1)*s.OutC:])
	}
	forwardDirect(kern, &half, y, pairs(x), filter, Epilogue[float32]{})
	return true
}

// InputGradBFloat16 is like InputGrad, for bfloat16. It pairs neighbouring channels of the output.
func InputGradBFloat16[H ~uint16](s *Shape, dx []float32, dy, f []H) bool {
	kern := microkernel.Pairs()
	if kern == nil || s.OutC%2 != 0 || s.groups() > 1 || s.inputs() == 0 || s.outputs() == 0 || !s.phased() {
		return false
	}
	s.check(len(dx), len(f), len(dy))
	half := *s
	half.OutC /= 2
	inputGradPhases(kern, &half, dx, pairs(dy), pairs(f), false)
	return true
}

// FilterGradBFloat16 is like FilterGrad, for bfloat16. It pairs neighbouring columns of the output,
// whose number must be even.
func FilterGradBFloat16[H ~uint16](s *Shape, df []float32, x, dy []H) bool {
	kern := microkernel.Pairs()
	if kern == nil || s.OutW%2 != 0 || s.pixels() < fewPixels || s.filter() == 0 || s.outputs() == 0 {
		return false
	}
	s.check(len(x), len(df), len(dy))
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	// Two neighbouring output columns read pixels that are a stride apart. There is such a pair for
	// each pixel and for each zero of the padding.
	c, half := s.correlate(), *s
	half.InW, half.OutW = c.width()-s.StrideW, s.OutW/2
	half.StrideW, half.PadLeft = 2*s.StrideW, 0
	px, py := microkernel.Resize(&m.BufA, half.inputs()), microkernel.Resize(&m.BufB, half.outputs())
	parallel.For(s.Batch, max(1, blockWork/(s.inputs()/s.Batch)), func(lo, hi int) {
		columnPairs(s, px, bits(x), half.InW, lo*s.InH, hi*s.InH)
		grads := bits(dy)
		for i := lo * half.pixels(); i < hi*half.pixels(); i++ {
			microkernel.PairRows(py[i*s.OutC:][:s.OutC], grads[2*i*s.OutC:], grads[(2*i+1)*s.OutC:])
		}
	})
	filterGradDirect(kern, &half, df, px, py, false)
	return true
}

// columnPairs sets dst to rows [lo, hi) of x as pairs, width pairs per row. A pair holds a pixel,
// or a zero of the padding, and the pixel that follows it at a distance of the stride.
func columnPairs(s *Shape, dst []float32, x []uint16, width, lo, hi int) {
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	row := words(microkernel.Resize(&m.BufA, (width+s.StrideW)*s.InC))[:(width+s.StrideW)*s.InC]
	clear(row)
	at := s.PadLeft * s.InC
	n := max(0, min(len(row)-at, s.InW*s.InC))
	for i := lo; i < hi; i++ {
		copy(row[at:], x[i*s.InW*s.InC:][:n])
		microkernel.PairRows(dst[i*width*s.InC:][:width*s.InC], row, row[s.StrideW*s.InC:])
	}
}

// words views memory as bfloat16.
func words(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

func bits[H ~uint16](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// pairs views elements as pairs, the element type of microkernel.Pairs.
func pairs[H ~uint16](x []H) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}
