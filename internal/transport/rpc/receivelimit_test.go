package rpc

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// TestReceivesAreBounded admits many tensors and checks how many bytes are admitted at a time.
func TestReceivesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ReceiveLimiter{window: 10, maxWait: time.Hour}
		var order []int // guarded by l.mu
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				g := l.acquire(int64(1 + i%4))
				l.mu.Lock()
				order = append(order, i)
				if l.used > 10 {
					t.Errorf("%d bytes are admitted", l.used)
				}
				l.mu.Unlock()
				time.Sleep(time.Millisecond) //nolint:forbidigo // in virtual time
				l.release(g)
			})
			synctest.Wait() // until it is admitted, or waits
		}
		wg.Wait()
		for i := range order { // grants that are given at once may be recorded in any order
			if order[i] < i-10 || order[i] > i+10 {
				t.Fatalf("admitted: %v", order)
			}
		}
		if l.used != 0 || len(l.waiting) != 0 {
			t.Errorf("left: %d bytes, %d grants that wait", l.used, len(l.waiting))
		}
	})
}

// TestReceivesDoNotHang lets an admitted tensor depend on one that waits.
func TestReceivesDoNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ReceiveLimiter{window: 10, maxWait: time.Second}
		large := l.acquire(100) // larger than the window
		start := time.Now()
		small := l.acquire(1)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		l.release(small)
		l.release(large)
		l.release(l.acquire(10))
		if waited := time.Since(start); waited != time.Second || l.used != 0 || l.admitted.Len() != 0 {
			t.Errorf("waited %v, %d bytes are left", waited, l.used)
		}
	})
}

// TestStalledPeerDelaysOthersOnce stalls peers in the middle of large tensors that fill the window,
// while others go on sending.
func TestStalledPeerDelaysOthersOnce(t *testing.T) {
	const size = 2 * minPlaced
	data, err := encode(&message.RecvTensorResponse{Tensor: vector(size / 4)})
	if err != nil {
		t.Fatal(err)
	}
	wire := slices.Concat(data.data...)
	data.Free()
	synctest.Test(t, func(t *testing.T) {
		limiter := &ReceiveLimiter{window: 3 * size, maxWait: time.Second}
		stalled := make([]*receiveBuffer, 3)
		for i := range stalled {
			stalled[i] = limiter.newBuffer(responseTensors[MethodRecvTensor], len(wire))
			deliver(stalled[i], wire[:len(wire)/2], scanSize)
		}
		start := time.Now()
		var others sync.WaitGroup
		for range 5 {
			others.Go(func() {
				for range 20 {
					a := limiter.newBuffer(responseTensors[MethodRecvTensor], len(wire))
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
		if limiter.used != 0 || limiter.admitted.Len() != 0 {
			t.Errorf("%d bytes of the window are still used", limiter.used)
		}
	})
}

// A message for which there is no memory is received and dropped.
func TestMessageWithoutMemory(t *testing.T) {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(64 << 20)
	l := NewReceiveLimiter(nil)
	const size = 200 << 20
	rb := l.newBuffer(nil, size)
	most := 0
	for left := size; left > 0; {
		n := len(rb.Buffer())
		if n == 0 {
			t.Fatalf("no memory for the last %d bytes", left)
		}
		rb.Advance(n)
		left -= n
		held := 0
		for _, piece := range rb.data {
			held += len(piece)
		}
		most = max(most, held)
	}
	if most > 32<<20 {
		t.Errorf("%d MiB were in memory of a limit of 64", most>>20)
	}
	if err := rb.decode(&pb.CreateSessionRequest{}); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("error %v", err)
	}
	if n := l.reading.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	membudget.SetLimit(0)
	rb = l.newBuffer(nil, size)
	for left := size; left > 0; {
		n := len(rb.Buffer())
		rb.Advance(n)
		left -= n
	}
	rb.Discard()
	if n := l.reading.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}
