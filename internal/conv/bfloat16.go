package conv

import (
	"unsafe"

	"github.com/weft-ml/weft/internal/tile"
)

// The functions below compute with the processor's instructions for bfloat16, whose results are float32. They report false,
// and do nothing, where there are none or they would not help; then the operands have to be widened.

// ForwardBFloat16 is Forward for bfloat16, with neighbouring channels of the input in pairs.
func ForwardBFloat16[H ~uint16](s *Shape, y []float32, x, f []H) bool {
	kern := tile.Pairs()
	if kern == nil || s.InC%2 != 0 || s.groups() > 1 || s.outputs() == 0 || s.patch() == 0 || s.OutW < narrow {
		return false
	}
	s.check(len(x), len(f), len(y))
	m := tile.ScratchOf[float32]()
	defer m.Release()
	half := *s
	half.InC /= 2
	rows, data := half.patch(), bits(f)
	filter := tile.Room(&m.BufB, rows*s.OutC)
	for i := range rows {
		tile.PairRows(filter[i*s.OutC:][:s.OutC], data[2*i*s.OutC:], data[(2*i+1)*s.OutC:])
	}
	forwardDirect(kern, &half, y, pairs(x), filter, Epilogue[float32]{})
	return true
}

// InputGradBFloat16 is InputGrad for bfloat16, with neighbouring channels of the output in pairs.
func InputGradBFloat16[H ~uint16](s *Shape, dx []float32, dy, f []H) bool {
	kern := tile.Pairs()
	if kern == nil || s.OutC%2 != 0 || s.groups() > 1 || s.inputs() == 0 || s.outputs() == 0 || !s.phased() {
		return false
	}
	s.check(len(dx), len(f), len(dy))
	half := *s
	half.OutC /= 2
	inputGradPhases(kern, &half, dx, pairs(dy), pairs(f), false)
	return true
}

func bits[H ~uint16](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// pairs views elements as pairs, as tile.Pairs takes them.
func pairs[H ~uint16](x []H) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}
