package spin

import (
	"testing"
	"time"
)

func notBusy() bool { return false }

func TestUntilReturnsWhenReady(t *testing.T) {
	s := spinner{enabled: true}
	calls := 0
	ready := func() bool { calls++; return calls == 3 }
	for calls < 3 { // another program may preempt the test
		s.coolUntil.Store(0)
		if s.until(time.Hour, notBusy, ready) != (calls == 3) {
			t.Fatalf("after %d calls, until contradicts the last result of ready", calls)
		}
	}
}

func TestUntilReturnsAfterLimit(t *testing.T) {
	s := spinner{enabled: true}
	if s.until(time.Nanosecond, notBusy, func() bool { return false }) {
		t.Error("until reports true although ready never did")
	}
}

func TestUntilYieldsToOthers(t *testing.T) {
	s := spinner{enabled: true}
	never := func() bool { t.Error("until calls ready while it must not spin"); return true }
	if s.until(time.Hour, func() bool { return true }, never) {
		t.Error("until reports true while a goroutine computes")
	}
	if !s.until(time.Hour, notBusy, func() bool { return !s.until(time.Hour, notBusy, never) }) {
		t.Error("until does not call ready")
	}
	calls := 0
	s.coolUntil.Store(0)
	s.until(time.Hour, func() bool { return calls > 0 }, func() bool { calls++; return false })
	if calls > 2 { // a preemption ends the wait with one more call
		t.Errorf("%d calls of ready, although a goroutine computes after the first", calls)
	}
	s.enabled = false
	if s.until(time.Hour, notBusy, never) {
		t.Error("until reports true although it is disabled")
	}
}

func TestCoolDownAfterPreemptions(t *testing.T) {
	var s spinner
	const now = int64(time.Hour)
	if s.preempted(int64(preemption), now) {
		t.Error("a short yield counts as a preemption")
	}
	for i := 1; i <= maxPreemptions; i++ {
		if got := s.coolUntil.Load(); got != 0 {
			t.Fatalf("cool-down after %d of %d preemptions", i-1, maxPreemptions)
		}
		if !s.preempted(int64(preemption)+1, now) {
			t.Error("a long yield does not count as a preemption")
		}
	}
	if got := s.coolUntil.Load(); got != now+int64(coolDown) {
		t.Errorf("cool-down until %d, want %d", got, now+int64(coolDown))
	}
}
