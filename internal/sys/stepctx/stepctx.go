// Package stepctx has contexts for what begins and ends many thousand times a second, mostly in
// peace. A [Context] is part of what it is the life of, and allocates nothing unless somebody waits
// for its end through the interface of package context.
package stepctx

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
)

// Ender is told that a life has ended before its time.
type CancelNotifier interface{ OnCancel() }

// Context is a life within that of its parent. It implements [context.Context], for which it makes
// one of the ordinary kind when Done or Value are first called. It may be used after its end, but
// not for another life unless Renew says so.
//
// A life ends with a parent of another kind, too, and Over and Err say so at once; it ends at its
// limit, which Check and Err see. But nobody is told of either, and what is within the life is not
// ended by name, before Watch was called: whoever is going to wait does so.
type Context struct {
	parent context.Context
	above  *Context // parent, if it is of this kind
	// the innermost parent of another kind that may end; nil if there is none
	root context.Context
	// the innermost life with a limit, this one or one around it; nil if there is none
	limited *Context
	limit   time.Duration // of limited == c: when it ends, by Now
	overdue error         // of limited == c: the cause of that end

	over atomic.Bool

	// Locks are taken from the inner life to the outer.
	mu       sync.Mutex
	err      error          // guarded by mu; once over
	cause    error          // guarded by mu; once over
	ender    CancelNotifier // guarded by mu; nil if nobody is to be told
	children []*Context     // guarded by mu
	room     [1]*Context    // for children: most have one
	// guarded by mu; it ended before its time, and somebody may be about to be told
	early    bool
	watching bool        // guarded by mu; root or the limit has been watched
	unwatch  func() bool // guarded by mu; stops watching root; nil if nobody does
	// guarded by mu; ends the life at its limit; nil if nobody watches that
	timer    *time.Timer
	ordinary context.Context         // guarded by mu; nil until it is needed
	cancel   context.CancelCauseFunc // guarded by mu; of ordinary

	quiet bool // set by Finish, for Renew
}

// Begin starts the life. It must be called first, and Finish when it is over.
func (c *Context) Begin(parent context.Context) {
	c.parent = parent
	above, ok := parent.(*Context)
	switch {
	case ok:
		c.above, c.root, c.limited = above, above.root, above.limited
		above.add(c)
	case parent.Err() != nil: // now, so that nothing is done in a life that is over
		c.end(parent.Err(), context.Cause(parent))
	case parent.Done() != nil:
		c.root = parent
	}
}

// Limit makes the life end at a time for a reason, unless a life around it ends before. It is
// called after Begin, before anybody else knows of the life.
func (c *Context) SetDeadline(at time.Duration, cause error) {
	if end, ok := c.parent.Deadline(); ok && mono.Of(end) <= at {
		return
	}
	c.limited, c.limit, c.overdue = c, at, cause
}

// Watch makes the life end with a parent of another kind, or at its limit, as soon as that comes,
// for those who wait and do not ask.
func (c *Context) Arm() {
	if c.root == nil && c.limited == nil {
		return
	}
	if c.above != nil {
		c.above.Arm()
		if c.limited != c {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching || c.over.Load() {
		return
	}
	c.watching = true
	if c.limited == c {
		c.timer = time.AfterFunc(c.limit-mono.Now(), c.expire)
	}
	if c.above == nil && c.root != nil {
		c.unwatch = context.AfterFunc(c.root, func() { c.end(c.root.Err(), context.Cause(c.root)) })
	}
}

// expire ends the life at its limit.
func (c *Context) expire() { c.end(context.DeadlineExceeded, c.overdue) }

func (c *Context) add(child *Context) {
	c.mu.Lock()
	over, err, cause := c.over.Load(), c.err, c.cause
	if !over {
		if c.children == nil {
			c.children = c.room[:0]
		}
		c.children = append(c.children, child)
	}
	c.mu.Unlock()
	if over {
		child.end(err, cause)
	}
}

func (c *Context) remove(child *Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.children, child); i >= 0 {
		c.children = slices.Delete(c.children, i, i+1)
	}
}

// Cancel ends the life, and those within it, for a reason. Only the first end counts.
func (c *Context) Cancel(cause error) { c.end(context.Canceled, cause) }

// end ends the life before its time. Who is told of it is told on another goroutine, so that a life
// may be ended under any lock.
func (c *Context) end(err, cause error) {
	c.mu.Lock()
	if c.over.Load() {
		c.mu.Unlock()
		return
	}
	c.early = true
	tell := c.endLocked(err, cause)
	c.mu.Unlock()
	tell.now()
}

// ending is who is to be told of an end.
type ending struct {
	err, cause error
	children   []*Context
	ender      CancelNotifier
	cancel     context.CancelCauseFunc
}

func (c *Context) endLocked(err, cause error) ending {
	if cause == nil {
		cause = err
	}
	tell := ending{err, cause, c.children, c.ender, c.cancel}
	c.err, c.cause, c.children, c.ender = err, cause, nil, nil
	c.over.Store(true)
	return tell
}

func (e *ending) now() {
	if e.cancel != nil {
		e.cancel(e.cause)
	}
	for _, child := range e.children {
		child.end(e.err, e.cause)
	}
	if e.ender != nil {
		go e.ender.OnCancel()
	}
}

// Notify makes e be told if the life ends before Silence or Finish.
func (c *Context) Notify(e CancelNotifier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Cancelled() {
		c.early = true
		go e.OnCancel()
		return
	}
	c.ender = e
}

// Silence ends what Notify began. It reports false if the life has ended.
func (c *Context) StopNotify() bool {
	c.CancelledOrExpired() // for a limit that nobody has watched
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ender = nil
	return !c.Cancelled()
}

// Finish ends the life at its time: nobody is told but who waits for Done.
func (c *Context) Finish() {
	if c.above != nil {
		c.above.remove(c)
	}
	if c.root != nil && c.root.Err() != nil {
		c.end(c.root.Err(), context.Cause(c.root))
	}
	var tell ending
	c.mu.Lock()
	c.ender = nil
	if !c.over.Load() {
		tell = c.endLocked(context.Canceled, context.Canceled)
	}
	c.quiet = !c.early && !c.watching && c.ordinary == nil && len(tell.children) == 0
	unwatch, timer := c.unwatch, c.timer
	c.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	if timer != nil {
		timer.Stop()
	}
	tell.now()
}

// Renew lets a life begin again after Finish, and reports whether it does: it ended at its time,
// and nobody can have kept anything of it or waited for its end. The caller knows that nobody uses
// the context itself.
func (c *Context) TryReset() bool {
	if !c.quiet {
		return false
	}
	c.parent, c.above, c.root, c.limited, c.overdue, c.err, c.cause, c.quiet = nil, nil, nil, nil, nil, nil, nil, false
	c.over.Store(false)
	return true
}

// Quiet reports, after Finish, whether Renew will.
func (c *Context) Reusable() bool { return c.quiet }

// Over reports whether the life has ended, but for a limit that nobody watches. It is the cheapest
// of all methods.
func (c *Context) Cancelled() bool { return c.over.Load() || c.root != nil && c.root.Err() != nil }

// Check is Over with a look at the clock, if there is a limit: for those who work long without
// waiting.
func (c *Context) CancelledOrExpired() bool {
	if c.Cancelled() {
		return true
	}
	if !c.isOverdue() {
		return false
	}
	c.limited.expire()
	return true
}

func (c *Context) isOverdue() bool { return c.limited != nil && mono.Now() >= c.limited.limit }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) {
	if c.limited == c {
		return mono.Time(c.limit), true
	}
	return c.parent.Deadline()
}

// Err implements context.Context. It ends nothing, as it is called with the locks of lives within
// this one.
func (c *Context) Err() error {
	switch {
	case c.over.Load():
	case c.isOverdue():
		return context.DeadlineExceeded
	default:
		return c.parent.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} { return c.asOrdinary().Done() }

// Value implements context.Context. Package context finds the cause of the end through it.
func (c *Context) Value(key any) any { return c.asOrdinary().Value(key) }

// asOrdinary returns a context that begins and ends with this one.
func (c *Context) asOrdinary() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ordinary == nil {
		over, parent, release := c.over.Load(), c.parent, func() {}
		if c.limited == c && (!over || errors.Is(c.err, context.DeadlineExceeded)) {
			parent, release = context.WithDeadlineCause(parent, mono.Time(c.limit), c.overdue)
		}
		ordinary, cancel := context.WithCancelCause(parent)
		c.ordinary, c.cancel = ordinary, func(cause error) {
			cancel(cause)
			release()
		}
		if over {
			c.cancel(c.cause)
		}
	}
	return c.ordinary
}
