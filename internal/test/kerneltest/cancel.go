package kerneltest

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// WantCancelled fails the test unless the operation ends when its step has ended.
func WantCancelled(t testing.TB, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := NewEnv()
	env.Step.Context = ctx
	node, err := env.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Run(inputs...); status.CodeOf(err) != status.Cancelled && !errors.Is(err, context.Canceled) {
		t.Errorf("%s in a cancelled step: %v", op, err)
	}
}
