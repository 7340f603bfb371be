package rpc

import (
	"slices"
	"sync"
	"time"
)

const (
	// inflowWindow is how many bytes of large tensors may arrive at this process, or be in requests that it serves, before
	// others have to wait.
	inflowWindow = 256 << 20
	// inflowPatience is how long they wait. What holds the window up may depend on what waits, so that nobody waits for ever.
	inflowPatience = time.Second
)

// arrivals is the inflow of this process.
var arrivals = inflow{window: inflowWindow, patience: inflowPatience}

// SetInflow sets how many bytes of large tensors may arrive at this process at a time, and how long others wait, and returns
// what undoes that.
func SetInflow(window int64, patience time.Duration) (restore func()) {
	f := &arrivals
	f.mu.Lock()
	defer f.mu.Unlock()
	oldWindow, oldPatience := f.window, f.patience
	f.window, f.patience = window, patience
	return func() { SetInflow(oldWindow, oldPatience) }
}

// An inflow bounds the memory of what many peers send at the same time. Who has to wait does not read its connection, so
// that its peer cannot send more. They are let in one after the other, in the order in which they came: a peer with much
// to send does not get ahead of the others.
type inflow struct {
	mu       sync.Mutex
	window   int64         // guarded by mu
	patience time.Duration // guarded by mu
	used     int64         // guarded by mu; may be more than the window, by one tensor and by what had no more patience
	waiting  []*entrant    // guarded by mu; in the order in which they came
}

// entrant is a tensor that waits.
type entrant struct {
	size int64
	in   chan struct{} // closed when it may come in
}

// enter waits until the window has room for a tensor. A tensor that is larger than the window comes in alone.
func (f *inflow) enter(size int64) {
	f.mu.Lock()
	if len(f.waiting) == 0 && f.fitsLocked(size) {
		f.used += size
		f.mu.Unlock()
		return
	}
	e := &entrant{size, make(chan struct{})}
	f.waiting = append(f.waiting, e)
	timer := time.NewTimer(f.patience)
	f.mu.Unlock()
	defer timer.Stop()
	select {
	case <-e.in:
	case <-timer.C:
		f.force(e)
	}
}

func (f *inflow) fitsLocked(size int64) bool { return f.used == 0 || f.used+size <= f.window }

// add takes a part of the window without waiting: who is in may need more to get out.
func (f *inflow) add(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used += size
}

// force lets somebody in, unless that has just happened.
func (f *inflow) force(e *entrant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.waiting, e); at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
		f.used += e.size
	}
}

// leave gives a part of the window back.
func (f *inflow) leave(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= size
	for len(f.waiting) > 0 && f.fitsLocked(f.waiting[0].size) {
		f.used += f.waiting[0].size
		close(f.waiting[0].in)
		f.waiting = slices.Delete(f.waiting, 0, 1)
	}
}
