package state

import (
	"context"
	"slices"
	"testing"
)

// Waiters are served in order, and those whose step has ended are not kept.
func TestMutexWaiters(t *testing.T) {
	m := makeMutex()
	var served []int
	acquire := func(step context.Context, i int) <-chan error {
		done := make(chan error, 1)
		m.acquire(step, func(err error) {
			if err == nil {
				served = append(served, i)
			}
			done <- err
		})
		return done
	}
	acquire(t.Context(), 0)
	ending, end := context.WithCancel(t.Context())
	var withdrawn []<-chan error
	for i := range 100 {
		withdrawn = append(withdrawn, acquire(ending, 1+i))
	}
	last := acquire(t.Context(), 1000)
	end()
	for _, done := range withdrawn {
		if err := <-done; err == nil {
			t.Fatal("a waiter was served after its step had ended")
		}
	}
	m.View(func() {
		if n := m.waiters.Len(); n != 1 {
			t.Errorf("%d waiters are kept", n)
		}
	})
	m.Change(func() { m.held = false })
	if err := <-last; err != nil || !slices.Equal(served, []int{0, 1000}) {
		t.Errorf("%v were served, %v", served, err)
	}
}

// watched is a context that never ends. It counts the functions to call at its end.
type watched struct {
	context.Context
	done  chan struct{}
	calls int
}

func (w *watched) Done() <-chan struct{} { return w.done }

// AfterFunc is called by package context.
func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.calls++
	return func() bool {
		w.calls--
		return true
	}
}

// A step that acquires a mutex again and again does not keep the locks that it has released.
func TestMutexForgetsLocks(t *testing.T) {
	m, step := makeMutex(), &watched{Context: t.Context(), done: make(chan struct{})}
	for range 10 {
		held := &lock{mutex: m}
		m.acquire(step, func(error) { held.endWith(step) })
		waiting := &lock{mutex: m}
		m.acquire(step, func(error) { waiting.endWith(step) })
		held.end()
		held.end()
		waiting.end()
	}
	if step.calls != 0 || m.held {
		t.Errorf("%d functions wait for the end of the step; held: %v", step.calls, m.held)
	}
}
