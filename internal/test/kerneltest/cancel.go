package kerneltest

import (
	"context"
	"errors"
	"sync/atomic"
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

// WantCancelledAt is WantCancelled for a step that ends at the given look at its context, so that a
// loop must look at it that often. A loop of package parallel looks before its first piece.
func WantCancelledAt(t testing.TB, look int, op string, attrs opdef.Attrs, inputs ...tensor.Tensor) {
	t.Helper()
	env := NewEnv()
	ending := &endingContext{Context: t.Context()}
	ending.left.Store(int64(look))
	env.Step.Context = ending
	node, err := env.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Run(inputs...); status.CodeOf(err) != status.Cancelled && !errors.Is(err, context.Canceled) {
		t.Errorf("%s in a step that ends at look %d: %v", op, look, err)
	}
}

// endingContext is a context that ends when it is looked at for the last time.
type endingContext struct {
	context.Context
	left atomic.Int64 // looks until it ends
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) <= 0 {
		return context.Canceled
	}
	return nil
}
