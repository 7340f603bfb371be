package kernel

import (
	"math/bits"

	"github.com/weft-ml/weft/internal/sys/membudget"
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

// Writable returns the value *t of a variable, inside Update or LockAll, with elements that may be
// written: its own elements if there is no other holder, otherwise a copy, which is charged to the
// step. The error is that of the allocation.
func (c *Context) Writable(t *tensor.Tensor) (*tensor.Tensor, error) {
	if !t.Initialized() || t.Exclusive() {
		return t, nil
	}
	charged := c.Step != nil && c.Step.Account != nil && !t.OnDevice()
	if charged {
		if err := c.Step.afford(t.DType(), t.Shape()); err != nil {
			return nil, err
		}
	}
	own, err := t.Clone()
	if err != nil {
		return nil, err
	}
	if charged {
		if err := c.Step.charge(&own); err != nil {
			own.Release()
			return nil, err
		}
	}
	t.Release()
	*t = own
	return t, nil
}

// charge charges a tensor to the account of the step.
func (s *Step) charge(t *tensor.Tensor) error {
	if over := membudget.ChargeTensor(t, s.Account); over != nil {
		return status.ResourceExhaustedf("%s", over.Message(int64(len(t.Bytes()))))
	}
	return nil
}
