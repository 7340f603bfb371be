package grpch2

import (
	"sync/atomic"
	"time"
)

// patience is how long a goroutine that reads a connection may do other things before another one
// reads on. A clock that ticks often keeps threads awake that would rather sleep.
const patience = 4 * time.Millisecond

// turn says whose turn it is to read a connection. The goroutine that has it may leave for work
// that is most likely short, such as serving the request that it has just read, and go on when it
// is back. If it has not come back within twice the patience, another goroutine has taken its
// place. This costs nothing as long as nobody is late: no goroutine is woken for a short call.
//
// The clock that looks for the late runs only while there are calls, so that it need not be set for
// each.
type turn struct {
	resume func() // reads on, in place of who is late

	away    atomic.Bool   // whoever makes it false has the turn
	leaves  atomic.Uint32 // how often somebody left
	ticking atomic.Bool
	clock   *time.Timer
	seen    uint32 // leaves at the last tick; of the clock alone
}

// leave gives the turn up until back.
func (t *turn) leave() {
	t.leaves.Add(1)
	t.away.Store(true)
	if t.ticking.CompareAndSwap(false, true) {
		t.clock.Reset(patience)
	}
}

// back takes the turn again and reports false if somebody else has it.
func (t *turn) back() bool { return t.away.CompareAndSwap(true, false) }

// start readies the clock. Resume is called on a goroutine of its own.
func (t *turn) start(resume func()) {
	t.resume = resume
	t.clock = time.AfterFunc(time.Hour, t.tick)
	t.clock.Stop()
}

// tick looks for who has been away since the last tick. It stops the clock when nobody left since
// then.
func (t *turn) tick() {
	leaves := t.leaves.Load()
	late := leaves == t.seen && t.away.CompareAndSwap(true, false)
	switch {
	case late || leaves != t.seen:
		t.seen = leaves
		t.clock.Reset(patience)
	default:
		t.ticking.Store(false)
		// who left just now found the clock ticking
		if t.away.Load() && t.ticking.CompareAndSwap(false, true) {
			t.clock.Reset(patience)
		}
	}
	if late {
		t.resume()
	}
}

// stop ends the clock. A turn that somebody is away from stays so.
func (t *turn) stop() { t.clock.Stop() }
