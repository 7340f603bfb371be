package grpch2

import "sync/atomic"

// A habit is something that happens often: it has happened several times, and not stayed away for
// long since. Once or twice proves nothing on a machine with other things to do.
type habit struct{ score atomic.Int32 }

const (
	habitStep  = 8 // one time makes up for so many without
	habitLimit = 2 * habitStep
	habitMax   = 8 * habitStep
)

// note says whether it has happened this time. Of two goroutines that say so at once, one may be
// ignored.
func (h *habit) note(happened bool) {
	score := h.score.Load()
	switch {
	case happened:
		h.score.Store(min(score+habitStep, habitMax))
	case score > 0:
		h.score.Store(score - 1)
	}
}

func (h *habit) is() bool { return h.score.Load() > habitLimit }
