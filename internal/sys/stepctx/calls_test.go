package stepctx

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-ml/weft/internal/sys/mono"
)

func TestCalls(t *testing.T) {
	var step Context
	step.Begin(context.Background())
	defer step.Finish()
	var c Calls
	c.Of(&step)
	if n := c.Begin() + c.Begin(); n != 3 {
		t.Errorf("the first two calls are in total %d, want 1 + 2", n)
	}
	c.End()
	if n := c.Begin(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	stop, many := errors.New("stop"), errors.New("too many")
	step.Cancel(stop)
	if err := c.Err(); !errors.Is(err, stop) {
		t.Errorf("after the step was cancelled: %v", err)
	}
	c.Fail(many)
	c.Fail(errors.New("later"))
	if err := c.Err(); !errors.Is(err, many) {
		t.Errorf("after Fail: %v", err)
	}
	c.Of(context.Background())
	if err := c.Err(); err != nil {
		t.Errorf("in another step: %v", err)
	}
}

// TestCallsAtDeadline has a deadline that passes without a timer.
func TestCallsAtDeadline(t *testing.T) {
	var step Context
	step.Begin(context.Background())
	defer step.Finish()
	late := errors.New("late")
	step.SetDeadline(mono.Now()-1, late)
	var c Calls
	c.Of(&step)
	if err := c.Err(); !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
}
