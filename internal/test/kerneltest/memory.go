package kerneltest

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TryWithin is Try with a limit of the memory of the process, in bytes. If the kernel is refused
// memory, the error has the code ResourceExhausted.
func TryWithin(limit int64, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) (out []tensor.Tensor, err error) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(limit)
	err = guard.Call(op, func() error {
		out, err = Try(op, attrs, inputs...)
		return err
	})
	return out, err
}

// WantExhausted fails the test unless the operation is refused memory within a limit of the
// process, in bytes.
func WantExhausted(t testing.TB, limit int64, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) {
	t.Helper()
	if _, err := TryWithin(limit, op, attrs, inputs...); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("%s: got %v, want RESOURCE_EXHAUSTED", op, err)
	}
}

// SharedText returns a vector of n strings of a size that share their text.
func SharedText(n, size int) tensor.Tensor {
	return tensor.Vector(slices.Repeat([]string{strings.Repeat("x", size)}, n)...)
}
