package parallel

import (
	"testing"
	"time"
)

// withWatch lets a test look whatever the machine is like.
func withWatch(t *testing.T) {
	t.Helper()
	before := mayWatch
	mayWatch = true
	watch.rests.Store(0)
	t.Cleanup(func() {
		mayWatch = before
		watch.strikes = 0
		watch.rests.Store(0)
	})
}

func TestWatchLooksUntilItIsThere(t *testing.T) {
	withWatch(t)
	looks := 0
	there := func() bool { looks++; return looks == 3 }
	for looks < 3 { // another program may interrupt it
		watch.rests.Store(0)
		if Watch(time.Hour, there) != (looks == 3) {
			t.Fatalf("after %d looks, Watch says otherwise than the last", looks)
		}
	}
}

func TestWatchEndsWithItsLimit(t *testing.T) {
	withWatch(t)
	if Watch(time.Nanosecond, func() bool { return false }) {
		t.Error("Watch found what was never there")
	}
}

func TestWatchGivesWay(t *testing.T) {
	withWatch(t)
	never := func() bool { t.Error("Watch looks while others want the core"); return true }
	Enter()
	if Watch(time.Hour, never) {
		t.Error("Watch found something while a goroutine computes")
	}
	Leave()
	if !Watch(time.Hour, func() bool { return !Watch(time.Hour, never) }) {
		t.Error("Watch did not look")
	}
	looks := 0
	Watch(time.Hour, func() bool { // ends, as a goroutine begins to compute
		if looks++; looks == 1 {
			Enter()
		}
		return false
	})
	Leave()
	mayWatch = false
	if Watch(time.Hour, never) {
		t.Error("Watch found something with a single core")
	}
}

func TestWatchRestsOnABusyMachine(t *testing.T) {
	var w watcher
	const now = int64(time.Hour)
	if w.interrupted(int64(slow), now) {
		t.Error("who answers counts as who computes")
	}
	for i := 1; i <= strikes; i++ {
		if got := w.rests.Load(); got != 0 {
			t.Fatalf("rests after %d of %d interruptions", i-1, strikes)
		}
		if !w.interrupted(int64(slow)+1, now) {
			t.Error("who computes is not seen")
		}
	}
	if got := w.rests.Load(); got != now+int64(rest) {
		t.Errorf("rests until %d, want %d", got, now+int64(rest))
	}
}
