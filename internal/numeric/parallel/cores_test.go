package parallel

import (
	"sync/atomic"
	"testing"
)

func TestTryEnter(t *testing.T) {
	setThreads(t, 2)
	if !HasIdleCore() || !TryAcquire() || !HasIdleCore() || !TryAcquire() {
		t.Error("two threads do not take two goroutines")
	}
	if HasIdleCore() || TryAcquire() {
		t.Error("two threads take a third goroutine")
	}
	Acquire() // does not ask
	for range 3 {
		Release()
	}
	if !HasIdleCore() {
		t.Error("nobody computes, and no core is idle")
	}
}

// A loop stays on its caller while other goroutines have the other threads, and calls for help when
// they leave.
func TestLoopsLeaveTakenCoresAlone(t *testing.T) {
	setThreads(t, 2)
	Acquire() // this goroutine
	Acquire() // another
	caller := goroutineID()
	For(20, 1, func(lo, hi int) {
		if id := goroutineID(); id != caller {
			t.Errorf("goroutine %s works on the loop", id)
		}
	})
	var left atomic.Bool
	meet := together(2)
	For(3, 1, func(lo, hi int) {
		if left.CompareAndSwap(false, true) {
			Release()
			return
		}
		meet(lo, hi) // returns when two goroutines run blocks
	})
	Release()
	if !HasIdleCore() {
		t.Error("a core is still taken")
	}
}
