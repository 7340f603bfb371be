package rpc

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/role/message"
)

// TestInflowIsBounded lets many tensors in and looks at how much there is at a time.
func TestInflowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &inflow{window: 10, patience: time.Hour}
		var order []int // guarded by f.mu
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				e := f.enter(int64(1 + i%4))
				f.mu.Lock()
				order = append(order, i)
				if f.used > 10 {
					t.Errorf("%d bytes are in", f.used)
				}
				f.mu.Unlock()
				time.Sleep(time.Millisecond) //nolint:forbidigo // in virtual time
				f.leave(e)
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
		large := f.enter(100) // alone
		start := time.Now()
		small := f.enter(1)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		f.leave(small)
		f.leave(large)
		f.leave(f.enter(10))
		if waited := time.Since(start); waited != time.Second || f.used != 0 || f.inside.Len() != 0 {
			t.Errorf("waited %v, %d bytes are left", waited, f.used)
		}
	})
}

// TestStalledPeerHoldsOthersUpOnce has peers stop in the middle of large tensors, which fill the
// window, and others send on.
func TestStalledPeerHoldsOthersUpOnce(t *testing.T) {
	const size = 2 * minPlaced
	data, err := encode(&message.RecvTensorResponse{Tensor: vector(size / 4)})
	if err != nil {
		t.Fatal(err)
	}
	wire := slices.Concat(data.data...)
	data.Free()
	synctest.Test(t, func(t *testing.T) {
		defer SetInflow(3*size, time.Second)()
		stalled := make([]*arrival, 3)
		for i := range stalled {
			stalled[i] = arriving(responseTensors[MethodRecvTensor], len(wire))
			deliver(stalled[i], wire[:len(wire)/2], headSize)
		}
		start := time.Now()
		var others sync.WaitGroup
		for range 5 {
			others.Go(func() {
				for range 20 {
					a := arriving(responseTensors[MethodRecvTensor], len(wire))
					deliver(a, wire, len(wire))
					var got message.RecvTensorResponse
					if err := receive(a, &got); err != nil {
						t.Error(err)
					}
					got.Release()
				}
			})
		}
		others.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("the others took %v", took)
		}
		for _, a := range stalled {
			a.Discard()
		}
		if arrivals.used != 0 || arrivals.inside.Len() != 0 {
			t.Errorf("%d bytes of the window are still used", arrivals.used)
		}
	})
}
