package parallel

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/spin"
)

// States of a worker's slot, besides a job that is offered to it.
var (
	idle   = new(job) // spinning, or about to spin
	parked = new(job) // asleep until wake receives a token
	busy   = new(job) // running a job
)

// Bounds of the time that a worker spins before it sleeps. The next loop often follows within
// microseconds. The time halves after each spin in vain, so an idle process uses next to no CPU
// time.
const (
	spinMax = 50 * time.Microsecond
	spinMin = 5 * time.Microsecond
)

// worker is one goroutine of the pool.
//
// A caller changes slot from idle or parked to its job (claim) and, if the worker has not started,
// back to idle (revoke). The worker changes slot from the job to busy and then to idle, and from
// idle to parked. Each change from parked to a job sends one token on wake.
type worker struct {
	slot atomic.Pointer[job]
	wake chan struct{}
	_    [48]byte // fills a cache line, so that workers do not share one
}

// claim offers j to the worker and reports false if it is working.
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

// revoke withdraws j and reports false if the worker has started it.
func (w *worker) revoke(j *job) bool { return w.slot.CompareAndSwap(j, idle) }

// run runs jobs until the pool is stopped.
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

// spin waits for a job for at most limit. It returns nil if none was offered.
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

// park sleeps until a job is offered. It reports false if the pool is stopped instead.
func (w *worker) park(quit <-chan struct{}) bool {
	if !w.slot.CompareAndSwap(idle, parked) {
		return true
	}
	select {
	case <-w.wake:
		return true
	case <-quit:
		w.slot.CompareAndSwap(parked, busy) // accepts no further offers
		return false
	}
}
