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
		return OverLimit(over, int64(n))
	}
	return nil
}

// OverLimit is the error of a node whose tensor of n bytes would take an account over its limit.
func OverLimit(a *membudget.Account, n int64) error {
	limit, flag := a.Limit()
	return status.ResourceExhaustedf("OOM when allocating %d bytes: the memory of a %s is limited to %d MiB (%s). %d MiB are in use.",
		n, a.Name(), limit>>20, flag, a.Used()>>20)
}

// ChargeOutputs charges the outputs of the node to the account of the step. It is for the executor,
// and the step must have an account.
func (c *Context) ChargeOutputs() error {
	for i := range c.outputs {
		t := &c.outputs[i].Tensor
		if !t.Initialized() {
			continue
		}
		if over := t.Charge(c.Step.Account); over != nil {
			return OverLimit(over, int64(len(t.Bytes())))
		}
	}
	return nil
}
