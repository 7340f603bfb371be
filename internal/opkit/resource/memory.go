package resource

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Account returns the account that pays for what a kernel adds to a resource; nil for none.
func Account(ctx *kernel.Context) *membudget.Account {
	if ctx.Step == nil {
		return nil
	}
	return ctx.Step.Account
}

// Zeros is tensor.Zeros for memory of a resource, which an account pays for until its last release.
func Zeros(a *membudget.Account, dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	if n := shape.NumElements(); n > 0 && n < 1<<48 {
		if over := a.Fits(n * int64(dtype.Size())); over != nil {
			return tensor.Tensor{}, exceeded(over, n*int64(dtype.Size()))
		}
	}
	t, err := tensor.Zeros(dtype, shape)
	if err != nil {
		return t, err
	}
	return t, Charge(a, &t)
}

// Charge charges a tensor of a resource to an account, unless an account pays for it already. If
// the account would exceed its limit, it releases the tensor and returns an error.
func Charge(a *membudget.Account, t *tensor.Tensor) error {
	if a == nil || !t.Initialized() {
		return nil
	}
	if over := membudget.ChargeTensor(t, a); over != nil {
		n := int64(t.NumElements()) * int64(t.DType().Size())
		t.Release()
		return exceeded(over, n)
	}
	return nil
}

// Hold charges n bytes that are in no tensor.
func Hold(h *membudget.Holding, a *membudget.Account, n int64) error {
	if over := h.Grow(a, n); over != nil {
		return exceeded(over, n)
	}
	return nil
}

func exceeded(over *membudget.Account, n int64) error {
	return status.ResourceExhaustedf("%s", over.Message(n))
}
