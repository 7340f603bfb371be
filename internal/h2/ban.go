package h2

import "sync/atomic"

// A ban keeps calls from being served in the turn to read after one that lost it: what the call waited for may have been
// behind it. Each is longer than the last, so that the time that is lost grows with the logarithm of the number of calls.
type ban struct {
	left   atomic.Int32 // calls
	length atomic.Int32 // of the last one
	kept   atomic.Int32 // calls that have not lost the turn since
}

const (
	banLeast = 16
	banMost  = 1 << 16
	banKept  = 256 // so many calls make the next ban half as long
)

// over reports whether there is none, or else counts a call of it.
func (b *ban) over() bool {
	if b.left.Load() > 0 {
		b.left.Add(-1)
		return false
	}
	return true
}

// lost begins the next one.
func (b *ban) lost() {
	b.length.Store(min(max(2*b.length.Load(), banLeast), banMost))
	b.left.Store(b.length.Load())
	b.kept.Store(0)
}

// keep takes note of a call that has not lost the turn.
func (b *ban) keep() {
	if b.kept.Add(1)%banKept == 0 {
		b.length.Store(b.length.Load() / 2)
	}
}
