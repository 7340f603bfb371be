package rpc

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/role/quota"
)

const (
	// receiveWindow is the number of bytes of large tensors that may arrive at one task, or be in
	// requests that it serves, before other senders have to wait.
	receiveWindow = 256 << 20
	// receiveMaxWait is the longest wait of a sender. It is finite because the admitted tensors may
	// depend on one that waits.
	receiveMaxWait = time.Second
)

// A ReceiveLimiter bounds the memory of large tensors that arrive at one task at the same time.
//
// Without a bound, the memory of a parameter server grows with the number of its clients, because
// each sends as fast as it can: 64 clients that push 1 MiB each grow its heap by 53 MB, and by 9.5
// MB with a window of 8 MiB. So a connection asks for a grant before it reads a large tensor. While
// it waits it does not read, and flow control stops its peer. Grants are given in the order of
// arrival, so that a peer that sends much does not overtake the others.
//
// A bound alone could hang: an admitted request may wait for a tensor that is not admitted. So a
// sender that has waited for maxWait is admitted anyway. Grants that are older than maxWait then
// stop counting, so that a peer that stalls in the middle of a tensor delays the others once, not
// with each of its tensors.
//
// It may be used concurrently.
type ReceiveLimiter struct {
	reading   atomic.Int64 // bytes of pieces of messages that are being received
	announced atomic.Int64 // bytes of tensors that have memory and have not arrived
	quota     *quota.Quota // limits of graphs; nil for the default ones

	mu      sync.Mutex
	window  int64         // in bytes; guarded by mu
	maxWait time.Duration // guarded by mu
	// bytes of admitted; exceeds window by one tensor, or by forced grants; guarded by mu
	used     int64
	waiting  []*grant  // in order of arrival; guarded by mu
	admitted list.List // grants that count, in order of admission; guarded by mu
}

// grant is the share of one message in the window of a limiter, or its request for one.
type grant struct {
	size  int64
	ready chan struct{} // closed on admission; nil if the grant never had to wait
	since time.Time     // time of admission
	place *list.Element // in admitted; nil if the grant does not count
}

// NewReceiveLimiter returns a limiter for the receives of one task, whose requests have graphs
// within a quota. A nil quota has the default limits.
func NewReceiveLimiter(q *quota.Quota) *ReceiveLimiter {
	return &ReceiveLimiter{window: receiveWindow, maxWait: receiveMaxWait, quota: q}
}

// SetWindow sets the window, in bytes, and the longest wait of a sender.
func (l *ReceiveLimiter) SetWindow(window int64, maxWait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window, l.maxWait = window, maxWait
}

// acquire waits until the window has room for a tensor, or for maxWait. A tensor that is larger
// than the window is admitted alone. The caller must release the grant.
func (l *ReceiveLimiter) acquire(size int64) *grant {
	l.mu.Lock()
	g := &grant{size: size}
	if len(l.waiting) == 0 && l.fitsLocked(size) {
		l.admitLocked(g)
		l.mu.Unlock()
		return g
	}
	g.ready = make(chan struct{})
	l.waiting = append(l.waiting, g)
	timer := time.NewTimer(l.maxWait)
	l.mu.Unlock()
	defer timer.Stop()
	select {
	case <-g.ready:
	case <-timer.C:
		l.force(g)
	}
	return g
}

func (l *ReceiveLimiter) fitsLocked(size int64) bool { return l.used == 0 || l.used+size <= l.window }

func (l *ReceiveLimiter) admitLocked(g *grant) {
	l.used += g.size
	g.since = time.Now()
	g.place = l.admitted.PushBack(g)
}

// extend enlarges a grant without waiting: a message that has been admitted may need more memory to
// be complete, and gives its grant back only then.
func (l *ReceiveLimiter) extend(g *grant, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.size += size
	if g.place != nil {
		l.used += size
	}
}

// force admits a grant whose wait has ended, unless it has just been admitted, and stops counting
// the grants that are older than maxWait.
func (l *ReceiveLimiter) force(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.waiting, g)
	if at < 0 {
		return
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.admitLocked(g)
	for first := l.admitted.Front(); first != nil; first = l.admitted.Front() {
		old := first.Value.(*grant) //nolint:forcetypeassert // nothing else is in the list
		if g.since.Sub(old.since) < l.maxWait {
			break
		}
		l.dropLocked(old)
	}
	l.admitWaitingLocked()
}

// release gives a grant back.
func (l *ReceiveLimiter) release(g *grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(g)
	l.admitWaitingLocked()
}

func (l *ReceiveLimiter) dropLocked(g *grant) {
	if g.place != nil {
		l.admitted.Remove(g.place)
		g.place = nil
		l.used -= g.size
	}
}

// admitWaitingLocked admits waiting grants in order of arrival while the window has room.
func (l *ReceiveLimiter) admitWaitingLocked() {
	for len(l.waiting) > 0 && l.fitsLocked(l.waiting[0].size) {
		l.admitLocked(l.waiting[0])
		close(l.waiting[0].ready)
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
}
