package parallel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	var calls atomic.Int64
	for _, n := range []int{0, 1, 1000} {
		calls.Store(0)
		if err := Each(t.Context(), n, 7, func(int) error { calls.Add(1); return nil }); err != nil || calls.Load() != int64(n) {
			t.Errorf("%d: %d calls, %v", n, calls.Load(), err)
		}
	}
	// whatever the order in which blocks run
	for range 100 {
		err := Each(t.Context(), 1000, 7, func(i int) error {
			if i%100 >= 53 {
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "number 53" {
			t.Fatal(err)
		}
	}
}

func TestEachEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	err := Each(ctx, 1<<40, 1<<20, func(int) error {
		if calls.Add(1) == 5000 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestEachEndsSoon checks that a failure ends a loop of more blocks than can be counted.
func TestEachEndsSoon(t *testing.T) {
	failure := errors.New("failure")
	err := Each(t.Context(), 1<<60, 1, func(i int) error {
		if i == 3*maxBlocks {
			return failure
		}
		return nil
	})
	if !errors.Is(err, failure) {
		t.Error(err)
	}
}
