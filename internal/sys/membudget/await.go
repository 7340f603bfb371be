package membudget

import (
	"context"
	"time"
)

const (
	// awaitTime is how long new work waits for memory.
	awaitTime = time.Second
	// awaitPeriod is the time between readings while work waits.
	awaitPeriod = 20 * time.Millisecond
)

// Await waits until a twentieth of the limit is free, at most a second, and reports whether it is.
// It is for sessions that begin: what runs already keeps what is left.
// It is a load if the last reading found enough.
func Await(ctx context.Context) bool { return !process.pressed.Load() || process.await(ctx) }

func (b *budget) await(ctx context.Context) bool {
	return poll(ctx, func() bool {
		limit := b.limit.Load()
		return limit == 0 || b.admit(0, limit-limit/pressShare)
	})
}

// poll calls there until it returns true, at most for awaitTime and until ctx ends.
func poll(ctx context.Context, there func() bool) bool {
	timer, ticker := time.NewTimer(awaitTime), time.NewTicker(awaitPeriod)
	defer timer.Stop()
	defer ticker.Stop()
	for {
		if there() {
			return true
		}
		select {
		case <-ticker.C:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
