package rpc

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestInflowIsBounded lets many tensors in and looks at how much there is at a time.
func TestInflowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &inflow{window: 10, patience: time.Hour}
		var order []int // guarded by f.mu
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				f.enter(int64(1 + i%4))
				f.mu.Lock()
				order = append(order, i)
				if f.used > 10 {
					t.Errorf("%d bytes are in", f.used)
				}
				f.mu.Unlock()
				time.Sleep(time.Millisecond) //nolint:forbidigo // in virtual time
				f.leave(int64(1 + i%4))
			})
			synctest.Wait() // until it is in, or waits
		}
		wg.Wait()
		for i := range order { // several that are let in at once may say so in any order
			if order[i] < i-10 || order[i] > i+10 {
				t.Fatalf("let in: %v", order)
			}
		}
		if f.used != 0 || len(f.waiting) != 0 {
			t.Errorf("left: %d bytes, %d that wait", f.used, len(f.waiting))
		}
	})
}

// TestInflowDoesNotHang has what is in depend on what waits.
func TestInflowDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &inflow{window: 10, patience: time.Second}
		f.enter(100) // alone
		start := time.Now()
		f.enter(1)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		f.leave(1)
		f.leave(100)
		f.enter(10)
		f.leave(10)
		if waited := time.Since(start); waited != time.Second || f.used != 0 {
			t.Errorf("waited %v, %d bytes are left", waited, f.used)
		}
	})
}
