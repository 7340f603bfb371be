// Package lifetime has contexts for what begins and ends many thousand times a second, mostly in peace. A [Context] is part
// of what it is the life of, and allocates nothing unless somebody waits for its end through the interface of package
// context.
package lifetime

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ender is told that a life has ended before its time.
type Ender interface{ Ended() }

// Context is a life within that of its parent. It implements [context.Context], for which it makes one of the ordinary kind
// when Done or Value are first called. It may be used after its end, but not for another life unless Renew says so.
//
// A life ends with a parent of another kind, too, and Over and Err say so at once. But nobody is told of that, and what is
// within the life is not ended by name, before Watch was called: whoever is going to wait does so.
type Context struct {
	parent context.Context
	above  *Context        // parent, if it is of this kind
	root   context.Context // the innermost parent of another kind that may end; nil if there is none

	over atomic.Bool

	// Locks are taken from the inner life to the outer.
	mu       sync.Mutex
	err      error                   // guarded by mu; once over
	cause    error                   // guarded by mu; once over
	ender    Ender                   // guarded by mu; nil if nobody is to be told
	children []*Context              // guarded by mu
	room     [1]*Context             // for children: most have one
	early    bool                    // guarded by mu; it ended before its time, and somebody may be about to be told
	watching bool                    // guarded by mu; root has been watched
	unwatch  func() bool             // guarded by mu; stops watching root; nil if nobody does
	ordinary context.Context         // guarded by mu; nil until it is needed
	cancel   context.CancelCauseFunc // guarded by mu; of ordinary
}

// Begin starts the life. It must be called first, and Finish when it is over.
func (c *Context) Begin(parent context.Context) {
	c.parent = parent
	above, ok := parent.(*Context)
	switch {
	case ok:
		c.above, c.root = above, above.root
		above.add(c)
	case parent.Err() != nil: // now, so that nothing is done in a life that is over
		c.end(parent.Err(), context.Cause(parent))
	case parent.Done() != nil:
		c.root = parent
	}
}

// Watch makes the life end with a parent of another kind as soon as that does, for those who wait and do not ask.
func (c *Context) Watch() {
	if c.root == nil {
		return
	}
	if c.above != nil {
		c.above.Watch()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watching && !c.over.Load() {
		c.watching = true
		c.unwatch = context.AfterFunc(c.root, func() { c.end(c.root.Err(), context.Cause(c.root)) })
	}
}

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

// end ends the life. Who is told of it is told on another goroutine, so that a life may be ended under any lock.
func (c *Context) end(err, cause error) { c.finish(err, cause, false) }

func (c *Context) finish(err, cause error, atItsTime bool) {
	c.mu.Lock()
	if c.over.Load() {
		c.mu.Unlock()
		return
	}
	if cause == nil {
		cause = err
	}
	c.err, c.cause, c.early = err, cause, !atItsTime
	c.over.Store(true)
	children, ender, cancel := c.children, c.ender, c.cancel
	c.children, c.ender = nil, nil
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
	for _, child := range children {
		child.end(err, cause)
	}
	if ender != nil {
		go ender.Ended()
	}
}

// Notify makes e be told if the life ends before Silence or Finish.
func (c *Context) Notify(e Ender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Over() {
		c.early = true
		go e.Ended()
		return
	}
	c.ender = e
}

// Silence ends what Notify began. It reports false if the life has ended.
func (c *Context) Silence() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ender = nil
	return !c.Over()
}

// Finish ends the life at its time: nobody is told but who waits for Done.
func (c *Context) Finish() {
	if c.above != nil {
		c.above.remove(c)
	}
	c.mu.Lock()
	c.ender = nil
	unwatch := c.unwatch
	c.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	if c.root != nil && c.root.Err() != nil {
		c.end(c.root.Err(), context.Cause(c.root))
		return
	}
	c.finish(context.Canceled, context.Canceled, true)
}

// Quiet reports whether the life is over and nobody can have kept anything of it: it ended at its time, and nobody waited
// for that.
func (c *Context) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quietLocked()
}

func (c *Context) quietLocked() bool {
	return c.over.Load() && !c.early && !c.watching && c.ordinary == nil && len(c.children) == 0
}

// Renew lets a life that is quiet begin again, and reports whether it is. The caller knows that nobody uses the context
// itself.
func (c *Context) Renew() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.quietLocked() {
		return false
	}
	c.parent, c.above, c.root, c.err, c.cause, c.children = nil, nil, nil, nil, nil, nil
	c.over.Store(false)
	return true
}

// Over reports whether the life has ended. It is the cheapest of all methods.
func (c *Context) Over() bool { return c.over.Load() || c.root != nil && c.root.Err() != nil }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Err implements context.Context.
func (c *Context) Err() error {
	if !c.over.Load() {
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
		c.ordinary, c.cancel = context.WithCancelCause(c.parent)
		if c.over.Load() {
			c.cancel(c.cause)
		}
	}
	return c.ordinary
}
