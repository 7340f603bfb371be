package parallel

import (
	"sync/atomic"
	"testing"
)

func TestTryAcquire(t *testing.T) {
	setThreads(t, 2)
	if !HasIdleCore() || !TryAcquire() || !HasIdleCore() || !TryAcquire() {
		t.Error("TryAcquire fails although a core is idle")
	}
	if HasIdleCore() || TryAcquire() {
		t.Error("TryAcquire succeeds although both cores are busy")
	}
	Acquire() // succeeds regardless of the count
	for range 3 {
		Release()
	}
	if !HasIdleCore() {
		t.Error("no core is idle although no goroutine computes")
	}
}

// A loop runs on its caller alone while other goroutines use the other cores, and takes workers
// when they release them.
func TestLoopsUseIdleCoresOnly(t *testing.T) {
	setThreads(t, 2)
	Acquire() // this goroutine
	Acquire() // another
	caller := goroutineID()
	For(20, 1, func(lo, hi int) {
		if id := goroutineID(); id != caller {
			t.Errorf("goroutine %s runs blocks although no core is idle", id)
		}
	})
	var released atomic.Bool
	barrier := barrierBody(2)
	For(3, 1, func(lo, hi int) {
		if released.CompareAndSwap(false, true) {
			Release()
			return
		}
		barrier(lo, hi) // returns when two goroutines run blocks
	})
	Release()
	if !HasIdleCore() {
		t.Error("a core is still busy after Release")
	}
}
