package waitqueue_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/status"
)

// pool is a counter that operations add to and take from.
type pool struct {
	waitqueue.Monitor
	takers *waitqueue.Queue
	n      int
}

func newPool(order waitqueue.Order) *pool {
	p := &pool{}
	p.takers = p.NewQueue(order)
	return p
}

func (p *pool) add(n int) { p.Change(func() { p.n += n }) }

// take waits until the counter is at least n and subtracts n.
func (p *pool) take(ctx context.Context, n int, done func(error)) {
	p.takers.Do(ctx, waitqueue.Operation{
		Try: func() (waitqueue.Outcome, error) {
			if n < 0 {
				panic("negative")
			}
			if p.n < n {
				return waitqueue.Blocked, nil
			}
			p.n -= n
			return waitqueue.Complete, nil
		},
		Done: done, Cancelled: "Take operation was cancelled",
	})
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		order waitqueue.Order
		want  []int
	}{{waitqueue.FIFO, []int{3, 1, 2}}, {waitqueue.AnyOrder, []int{1, 2, 3}}} {
		p := newPool(tt.order)
		var got []int
		for _, n := range []int{3, 1, 2} {
			p.take(t.Context(), n, func(error) { got = append(got, n) })
		}
		for range 6 {
			p.add(1)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("order %v: served %v, want %v", tt.order, got, tt.want)
		}
	}
}

// An operation that starts to wait, or stops, does not try those that wait already.
func TestWaitersAreNotTriedInVain(t *testing.T) {
	const n = 1000
	p := newPool(waitqueue.AnyOrder)
	ctx, cancel := context.WithCancel(t.Context())
	var tries int
	var ended sync.WaitGroup
	ended.Add(n)
	for range n {
		p.takers.Do(ctx, waitqueue.Operation{
			Try:  func() (waitqueue.Outcome, error) { tries++; return waitqueue.Blocked, nil },
			Done: func(error) { ended.Done() },
		})
	}
	cancel()
	ended.Wait()
	if tries > 2*n {
		t.Errorf("%d tries of %d operations", tries, n)
	}
}

func TestCancel(t *testing.T) {
	p := newPool(waitqueue.FIFO)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	p.take(ctx, 2, func(err error) { first <- err })
	p.take(t.Context(), 1, func(err error) { second <- err })
	p.add(1)
	cancel()
	if err := <-first; status.CodeOf(err) != status.Cancelled || err.Error() != "Take operation was cancelled" {
		t.Errorf("cancelled operation ended with %v", err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
	p.take(ctx, 0, func(err error) { first <- err })
	if err := <-first; status.CodeOf(err) != status.Cancelled {
		t.Errorf("operation of a cancelled step ended with %v", err)
	}
	p.View(func() {
		if n := p.takers.Len(); n != 0 {
			t.Errorf("%d operations still wait", n)
		}
	})
}

func TestWithdraw(t *testing.T) {
	var m waitqueue.Monitor
	l := m.NewQueue(waitqueue.FIFO)
	held := 0
	done := make(chan error, 1)
	l.Do(t.Context(), waitqueue.Operation{
		Try:      func() (waitqueue.Outcome, error) { held++; return waitqueue.Blocked, nil },
		Withdraw: func() { held = 0 },
		Done:     func(err error) { done <- err },
	})
	l.CancelAll(func() {})
	if err := <-done; status.CodeOf(err) != status.Cancelled || held != 0 {
		t.Errorf("ended with %v and %d held", err, held)
	}
}

func TestPanic(t *testing.T) {
	p := newPool(waitqueue.FIFO)
	var got error
	p.take(t.Context(), -1, func(err error) { got = err })
	if status.CodeOf(got) != status.Internal {
		t.Errorf("panic became %v", got)
	}
	p.take(t.Context(), 0, func(err error) { got = err })
	if got != nil {
		t.Errorf("after a panic: %v", got)
	}
}

// TestRace moves tokens between goroutines and counts the tokens at the end. Some goroutines are
// cancelled.
func TestRace(t *testing.T) {
	p := newPool(waitqueue.FIFO)
	p.add(3)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				p.take(ctx, 1+j%3, func(err error) { done <- err })
				if (i+j)%4 == 0 {
					cancel()
				}
				if err := <-done; err == nil {
					p.add(1 + j%3)
				}
				cancel()
				if len(done) != 0 {
					t.Error("done was called twice")
				}
			}
		})
	}
	wg.Wait()
	if p.n != 3 || p.takers.Len() != 0 {
		t.Errorf("%d tokens and %d waiters at the end", p.n, p.takers.Len())
	}
}
