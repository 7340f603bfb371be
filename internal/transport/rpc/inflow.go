package rpc

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

const (
	// inflowWindow is how many bytes of large tensors may arrive at this process, or be in requests
	// that it serves, before others have to wait.
	inflowWindow = 256 << 20
	// inflowPatience is how long they wait. What holds the window up may depend on what waits, so
	// that nobody waits for ever.
	inflowPatience = time.Second
)

// arrivals is the inflow of this process.
var arrivals = inflow{window: inflowWindow, patience: inflowPatience}

// SetInflow sets how many bytes of large tensors may arrive at this process at a time, and how long
// others wait, and returns what undoes that.
func SetInflow(window int64, patience time.Duration) (restore func()) {
	f := &arrivals
	f.mu.Lock()
	defer f.mu.Unlock()
	oldWindow, oldPatience := f.window, f.patience
	f.window, f.patience = window, patience
	return func() { SetInflow(oldWindow, oldPatience) }
}

// An inflow bounds the memory of what many peers send at the same time. Who has to wait does not
// read its connection, so that its peer cannot send more. They are let in one after the other, in
// the order in which they came: a peer with much to send does not get ahead of the others.
//
// Who has no more patience comes in all the same, and what has been in for as long no longer
// counts: a peer that stops in the middle of a tensor holds the others up once, not with each of
// theirs.
type inflow struct {
	mu       sync.Mutex
	window   int64         // guarded by mu
	patience time.Duration // guarded by mu
	// guarded by mu; may be more than the window, by one tensor and by what had no more patience
	used    int64
	waiting []*entry // guarded by mu; in the order in which they came
	// guarded by mu; the entries that count, in the order in which they came in
	inside list.List
}

// entry is what a message has of the window, or waits for.
type entry struct {
	size  int64
	in    chan struct{} // closed when it may come in; nil if it never had to wait
	since time.Time     // when it came in
	place *list.Element // in inside; nil if it does not count
}

// enter waits until the window has room for a tensor. A tensor that is larger than the window comes
// in alone.
func (f *inflow) enter(size int64) *entry {
	f.mu.Lock()
	e := &entry{size: size}
	if len(f.waiting) == 0 && f.fitsLocked(size) {
		f.letInLocked(e)
		f.mu.Unlock()
		return e
	}
	e.in = make(chan struct{})
	f.waiting = append(f.waiting, e)
	timer := time.NewTimer(f.patience)
	f.mu.Unlock()
	defer timer.Stop()
	select {
	case <-e.in:
	case <-timer.C:
		f.force(e)
	}
	return e
}

func (f *inflow) fitsLocked(size int64) bool { return f.used == 0 || f.used+size <= f.window }

func (f *inflow) letInLocked(e *entry) {
	f.used += e.size
	e.since = time.Now()
	e.place = f.inside.PushBack(e)
}

// add gives an entry a larger part of the window without waiting: who is in may need more to get
// out.
func (f *inflow) add(e *entry, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.size += size
	if e.place != nil {
		f.used += size
	}
}

// force lets somebody in, unless that has just happened, and no longer counts what has been in for
// too long.
func (f *inflow) force(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.waiting, e)
	if at < 0 {
		return
	}
	f.waiting = slices.Delete(f.waiting, at, at+1)
	f.letInLocked(e)
	for first := f.inside.Front(); first != nil; first = f.inside.Front() {
		old := first.Value.(*entry) //nolint:forcetypeassert // nothing else is in the list
		if e.since.Sub(old.since) < f.patience {
			break
		}
		f.dropLocked(old)
	}
	f.admitLocked()
}

// leave gives a part of the window back.
func (f *inflow) leave(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked(e)
	f.admitLocked()
}

func (f *inflow) dropLocked(e *entry) {
	if e.place != nil {
		f.inside.Remove(e.place)
		e.place = nil
		f.used -= e.size
	}
}

// admitLocked lets in who waits, as far as there is room.
func (f *inflow) admitLocked() {
	for len(f.waiting) > 0 && f.fitsLocked(f.waiting[0].size) {
		f.letInLocked(f.waiting[0])
		close(f.waiting[0].in)
		f.waiting = slices.Delete(f.waiting, 0, 1)
	}
}
