package state

import "testing"

// Waiters that were withdrawn are not kept, and the others are served in order.
func TestWithdrawnWaiters(t *testing.T) {
	m := &mutex{}
	var served []int
	wait := func(i int) func() bool { return m.acquire(func() { served = append(served, i) }) }
	first := wait(0)
	var withdraw []func() bool
	for i := range 1_000_000 {
		withdraw = append(withdraw, wait(1+i))
	}
	last := wait(-1)
	for _, f := range withdraw {
		if !f() {
			t.Fatal("a waiter was not withdrawn")
		}
		if f() {
			t.Fatal("a waiter was withdrawn twice")
		}
	}
	if n := m.waiters.Len(); n != 1 {
		t.Errorf("%d waiters are kept", n)
	}
	m.release()
	if len(served) != 2 || served[1] != -1 {
		t.Errorf("served %v", served)
	}
	if first() || last() {
		t.Error("a waiter that was served was withdrawn")
	}
	m.release()
	if m.held {
		t.Error("the mutex is held")
	}
}
