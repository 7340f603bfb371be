package random

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// truncated draws from a normal distribution truncated to [least, most], as a step with a context.
func truncated(t *testing.T, ctx context.Context, least, most float32, shape ...int64) error { //nolint:revive // t comes first
	t.Helper()
	env := kerneltest.NewEnv()
	env.Step.Context = ctx
	node, err := env.Make("ParameterizedTruncatedNormal", opdef.Attrs{"dtype": tensor.Float32, "T": tensor.Int64})
	if err != nil {
		t.Fatal(err)
	}
	one := func(v float32) tensor.Tensor { return tensor.Vector(v) }
	_, err = node.Run(tensor.Vector(shape...), one(0), one(1), one(least), one(most))
	return err
}

// Samples without elements take no time, and their parameters are checked.
func TestNoTruncatedSamples(t *testing.T) {
	ended := make(chan error, 2)
	go func() {
		ended <- truncated(t, t.Context(), -1, 1, 1<<40, 0)
		ended <- truncated(t, t.Context(), 1, -1, 1<<40, 0)
	}()
	for _, valid := range []bool{true, false} {
		select {
		case err := <-ended:
			if valid != (err == nil) {
				t.Errorf("valid parameters: %v, got %v", valid, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it takes too long")
		}
	}
}

// Samples end with their step if many are rejected.
func TestTruncatedSamplesEndWithStep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := truncated(t, ctx, -1, 1, 100, 10_000); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
