package grpch2

import (
	"sync/atomic"
	"time"
)

// handoffDelay is how long a goroutine may hold up a connection before another one reads it. At
// 4 ms a running timer costs next to nothing; at 1 ms the scheduler keeps two threads awake, and a
// call takes 95 µs instead of 60.
const handoffDelay = 4 * time.Millisecond

// A readToken decides which goroutine reads a connection. At most one goroutine holds it.
//
// The simple design has one goroutine that only reads and hands each request to another. It is too
// slow for small steps: the handoff wakes a thread, about 40 µs on two cores, more than decoding,
// running and answering the step together. So the reader serves a request itself. That is only
// safe if a slow request cannot block the ones queued behind it.
//
// Two invariants follow:
//
//  1. At most one goroutine reads at any time, so that frames are processed in order.
//  2. A connection is never left unread for more than two handoff delays (8 ms), whatever a handler
//     does.
//
// Protocol:
//
//	reader:   release()                     // released = true; start the timer if it is not running
//	          serve the request
//	          if !reacquire() { return }    // released was false: another goroutine reads
//	          read the next frame
//	timer:    every handoffDelay:
//	            if release was called since the last tick:               keep ticking
//	            else if released changes from true to false:             resume(); keep ticking
//	            else:                                                    stop ticking
//
// The compare-and-swap on released arbitrates between the returning reader and the timer: the one
// that changes it to false holds the token. A reader that loses finishes its request and exits.
//
// One timer per request would wake a thread per request. The ticking timer costs a request three
// uncontended atomic operations instead. It stops when the connection is idle, and release starts
// it again. A reader that releases the token exactly while the timer stops is caught by the check
// at the end of tick.
type readToken struct {
	resume func() // reads the connection in place of the reader that lost the token

	released     atomic.Bool   // the goroutine that changes it to false holds the token
	releases     atomic.Uint32 // number of calls of release
	timerRunning atomic.Bool
	timer        *time.Timer
	lastReleases uint32 // releases at the last tick; used by tick only
}

// init prepares the timer. The token is held by the caller. Resume is called on a new goroutine.
func (t *readToken) init(resume func()) {
	t.resume = resume
	t.timer = time.AfterFunc(time.Hour, t.tick)
	t.timer.Stop()
}

// release gives up the token until reacquire. Only the holder may call it.
func (t *readToken) release() {
	t.releases.Add(1)
	t.released.Store(true)
	if t.timerRunning.CompareAndSwap(false, true) {
		t.timer.Reset(handoffDelay)
	}
}

// reacquire takes the token and reports false if another goroutine holds it.
func (t *readToken) reacquire() bool { return t.released.CompareAndSwap(true, false) }

// tick takes the token and reads if it has been released for a whole tick. It stops the timer if
// nothing was released since the last tick.
func (t *readToken) tick() {
	releases := t.releases.Load()
	late := releases == t.lastReleases && t.released.CompareAndSwap(true, false)
	switch {
	case late || releases != t.lastReleases:
		t.lastReleases = releases
		t.timer.Reset(handoffDelay)
	default:
		t.timerRunning.Store(false)
		// a release between Load and Store found the timer running and did not start it
		if t.released.Load() && t.timerRunning.CompareAndSwap(false, true) {
			t.timer.Reset(handoffDelay)
		}
	}
	if late {
		t.resume()
	}
}

// stop stops the timer. A released token stays released.
func (t *readToken) stop() { t.timer.Stop() }
