package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/numeric/microkernel"
	"github.com/weft-ml/weft/internal/numeric/parallel"
)

// The functions below compute with the processor's instructions for bfloat16, whose results are
// float32. They report false, and do nothing, where there are none or they would not help; then the
// operands have to be widened.

// ForwardBFloat16 is Forward for bfloat16, with neighbouring channels of the input in pairs.
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
	filter := microkernel.Room(&m.BufB, rows*s.OutC)
	for i := range rows {
		microkernel.PairRows(filter[i*s.OutC:][:s.OutC], data[2*i*s.OutC:], data[(2*i+1)*s.OutC:])
	}
	forwardDirect(kern, &half, y, pairs(x), filter, Epilogue[float32]{})
	return true
}

// InputGradBFloat16 is InputGrad for bfloat16, with neighbouring channels of the output in pairs.
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

// FilterGradBFloat16 is FilterGrad for bfloat16, with neighbouring columns of the output, whose
// number is even, in pairs.
func FilterGradBFloat16[H ~uint16](s *Shape, df []float32, x, dy []H) bool {
	kern := microkernel.Pairs()
	if kern == nil || s.OutW%2 != 0 || s.pixels() < fewPixels || s.filter() == 0 || s.outputs() == 0 {
		return false
	}
	s.check(len(x), len(df), len(dy))
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	// Two columns of outputs see pixels that lie a stride apart: there is a pair of them for each
	// pixel and for each zero beside the image.
	c, half := s.correlate(), *s
	half.InW, half.OutW = c.width()-s.StrideW, s.OutW/2
	half.StrideW, half.PadLeft = 2*s.StrideW, 0
	px, py := microkernel.Room(&m.BufA, half.inputs()), microkernel.Room(&m.BufB, half.outputs())
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

// columnPairs makes rows [lo, hi) of so many pairs of pixels from those of x: each pixel, or zero
// left or right of the image, and the one that lies a stride behind it.
func columnPairs(s *Shape, dst []float32, x []uint16, width, lo, hi int) {
	m := microkernel.ScratchOf[float32]()
	defer m.Release()
	row := words(microkernel.Room(&m.BufA, (width+s.StrideW)*s.InC))[:(width+s.StrideW)*s.InC]
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

// pairs views elements as pairs, as tile.Pairs takes them.
func pairs[H ~uint16](x []H) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}
