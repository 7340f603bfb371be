package grpch2

import (
	"testing"
	"time"
)

func TestHands(t *testing.T) {
	h := hands{rest: time.Hour}
	defer h.end()
	if h.take() != nil {
		t.Error("a goroutine that nobody started waits for a call")
	}
	first, second := make(chan work, 1), make(chan work, 1)
	if !h.wait(first) || !h.wait(second) {
		t.Fatal("two goroutines may not wait for calls")
	}
	if h.take() != second { // its stack is in the cache
		t.Error("not the goroutine that has served last serves next")
	}
	if h.take() != first || h.take() != nil {
		t.Error("a goroutine is lost, or serves two calls at once")
	}
	for range maxHands {
		if !h.wait(make(chan work, 1)) {
			t.Fatal("too few goroutines wait")
		}
	}
	if h.wait(first) {
		t.Error("too many goroutines wait")
	}
	last := h.take()
	h.wait(second)
	h.end()
	if _, more := <-second; more {
		t.Error("a goroutine that waits does not learn of the end")
	}
	if h.wait(last) || h.take() != nil {
		t.Error("goroutines wait for calls after the end")
	}
}

func TestHandsRest(t *testing.T) {
	h := hands{rest: time.Hour}
	defer h.end()
	next := make(chan work, 1)
	h.wait(next)
	h.take()
	h.wait(next)
	h.tick()
	if h.take() != next {
		t.Fatal("a goroutine that was needed a moment ago does not wait")
	}
	h.wait(next)
	h.tick()
	h.tick()
	if _, more := <-next; more || h.take() != nil {
		t.Error("a goroutine waits that was not needed for long")
	}
}
