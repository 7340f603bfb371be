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
// when Done or Value are first called. It may be used after its end, but not for another life.
type Context struct {
	parent  context.Context
	above   *Context    // parent, if it is of this kind
	unwatch func() bool // stops watching a parent of another kind; nil if there is nothing to watch

	over atomic.Bool

	// Locks are taken from the inner life to the outer.
	mu       sync.Mutex
	err      error                   // guarded by mu; once over
	cause    error                   // guarded by mu; once over
	ender    Ender                   // guarded by mu; nil if nobody is to be told
	children []*Context              // guarded by mu
	room     [1]*Context             // for children: most have one
	ordinary context.Context         // guarded by mu; nil until it is needed
	cancel   context.CancelCauseFunc // guarded by mu; of ordinary
}

// Begin starts the life. It must be called first, and Finish when it is over.
func (c *Context) Begin(parent context.Context) {
	c.parent = parent
	above, ok := parent.(*Context)
	switch {
	case ok:
		c.above = above
		above.add(c)
	case parent.Err() != nil: // now, so that nothing is done in a life that is over
		c.end(parent.Err(), context.Cause(parent))
	case parent.Done() != nil:
		c.unwatch = context.AfterFunc(parent, func() { c.end(parent.Err(), context.Cause(parent)) })
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
func (c *Context) end(err, cause error) {
	c.mu.Lock()
	if c.over.Load() {
		c.mu.Unlock()
		return
	}
	if cause == nil {
		cause = err
	}
	c.err, c.cause = err, cause
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
	if c.over.Load() {
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
	return !c.over.Load()
}

// Finish ends the life at its time: nobody is told but who waits for Done.
func (c *Context) Finish() {
	if c.above != nil {
		c.above.remove(c)
	}
	if c.unwatch != nil {
		c.unwatch()
	}
	c.Silence()
	c.end(context.Canceled, context.Canceled)
}

// Over reports whether the life has ended. It is the cheapest of all methods.
func (c *Context) Over() bool { return c.over.Load() }

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
