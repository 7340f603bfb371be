package grpch2

// An inlineBackoff sends the calls of one method to the worker pool for a while after one of them
// lost the read token: it took more than handoffDelay on the reader goroutine.
//
// The simple rule counts a lost token as one long call. It is not enough where calls are short by
// their average and long for one reason: the call waits for a request queued behind it on the same
// connection, such as a step that waits for a tensor which the peer has yet to ask for. Each such
// call costs the connection at least 4 ms. Without the backoff, training of an MLP of
// 100 units lost 8 to 21% of its speed.
//
// Each backoff lasts twice as many calls as the one before, so the time lost grows with the
// logarithm of the number of calls. Calls that return the token in time shorten the next one. It is
// not safe for concurrent use: only the holder of the read token touches it.
type inlineBackoff struct {
	remaining int // calls to the end of this backoff
	length    int // of this backoff, or of the last one if it has ended; in calls
	successes int // calls served inline since the last lost token
}

const (
	minInlineBackoff = 16
	maxInlineBackoff = 1 << 16
	callsToHalve     = 256 // successes that halve the next backoff
)

// allow reports whether a call may be served inline. Otherwise it counts the call towards the end
// of the backoff.
func (b *inlineBackoff) allow() bool {
	if b.remaining == 0 {
		return true
	}
	b.remaining--
	return false
}

// grow starts a backoff after a call that lost the token.
func (b *inlineBackoff) grow() {
	b.length = min(max(2*b.length, minInlineBackoff), maxInlineBackoff)
	b.remaining, b.successes = b.length, 0
}

// succeed counts a call that was served inline and returned the token in time.
func (b *inlineBackoff) succeed() {
	if b.successes++; b.successes%callsToHalve == 0 {
		b.length /= 2
	}
}
