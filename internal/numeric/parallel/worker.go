package parallel

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/spin"
)

// States of a worker's slot besides a job that is offered to it.
var (
	idle   = new(job) // spinning, or about to
	parked = new(job) // asleep until a token arrives on wake
	busy   = new(job) // working
)

// A worker that has run out of work spins before it sleeps, because a loop often follows the one
// before within microseconds. The time halves whenever spinning was in vain, so that an idle
// process uses no core.
const (
	spinMax = 50 * time.Microsecond
	spinMin = 5 * time.Microsecond
)

// worker is one goroutine of the pool. A caller moves slot from idle or parked to its job (claim)
// and, if the worker has not begun, back to idle (revoke); the worker moves it from the job to busy
// and then to idle, and from idle to parked. Each step from parked to a job comes with one token on
// wake.
type worker struct {
	slot atomic.Pointer[job]
	wake chan struct{}
	_    [48]byte // a cache line per worker
}

// claim offers j to the worker if it has nothing to do.
func (w *worker) claim(j *job) bool {
	if w.slot.CompareAndSwap(idle, j) {
		return true
	}
	if w.slot.CompareAndSwap(parked, j) {
		w.wake <- struct{}{}
		return true
	}
	return false
}

// revoke takes j back and reports false if the worker has begun.
func (w *worker) revoke(j *job) bool { return w.slot.CompareAndSwap(j, idle) }

func (w *worker) run(quit <-chan struct{}) {
	limit := spinMin
	for {
		j := w.spin(limit)
		if j == nil {
			limit = max(limit/2, spinMin)
			if !w.park(quit) {
				return
			}
			continue
		}
		limit = spinMax
		if w.slot.CompareAndSwap(j, busy) {
			j.help(w)
		}
	}
}

// spin waits for a job at most that long.
func (w *worker) spin(limit time.Duration) *job {
	for start := time.Now(); ; {
		for range 8 {
			if j := w.slot.Load(); j != idle {
				return j
			}
			spin.Pause()
		}
		if time.Since(start) >= limit {
			return nil
		}
		runtime.Gosched()
	}
}

// park sleeps until a job is offered and reports false if the pool is stopped instead.
func (w *worker) park(quit <-chan struct{}) bool {
	if !w.slot.CompareAndSwap(idle, parked) {
		return true
	}
	select {
	case <-w.wake:
		return true
	case <-quit:
		w.slot.CompareAndSwap(parked, busy) // no more offers
		return false
	}
}
