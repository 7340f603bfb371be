package kernel

import (
	"math/bits"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// afford returns an error if the account of the step cannot pay for a tensor.
func (s *Step) afford(dtype tensor.DType, shape tensor.Shape) error {
	n := uint64(dtype.Size())
	for _, dim := range shape {
		hi, lo := bits.Mul64(n, uint64(dim))
		if hi != 0 || lo > 1<<62 {
			return nil // tensor.Alloc fails
		}
		n = lo
	}
	if over := s.Account.Fits(int64(n)); over != nil {
		return status.ResourceExhaustedf("%s", over.Message(int64(n)))
	}
	return nil
}
