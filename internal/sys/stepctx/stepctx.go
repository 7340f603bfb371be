// Package stepctx provides a context.Context for work that starts and finishes tens of thousands of
// times per second.
//
// The simple design gives each step a cancellable context from package context and registers a
// callback for its end. These were 17 of the 37 allocations of a step in one process, although most
// steps never wait on them. A [Context] is a plain struct, embedded in
// its step: cheap to poll, and a standard context only on demand.
//
//   - [Context.Cancelled] is one atomic load, and one Err call on a foreign parent. It does not
//     read the clock.
//   - [Context.CancelledOrExpired] also enforces the deadline. Long-running loops call it between
//     pieces of work.
//   - [Context.Arm] starts the deadline timer and subscribes to the foreign parent. Call it before
//     blocking until a notification.
//   - [Context.Done] creates a standard context on first use, and so does package context when it
//     asks for a cause or attaches a child.
//
// Call Begin first and Finish last. The struct may be reused if TryReset then returns true.
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

// CancelNotifier receives the notification that a context was cancelled or has expired before
// Finish. OnCancel runs on a new goroutine.
type CancelNotifier interface{ OnCancel() }

// Context is the context of one step, within that of its parent. It implements [context.Context],
// and may be used concurrently except for Begin, SetDeadline, Finish and TryReset, which its owner
// calls. It stays valid after it ends. Reuse it for another step only if TryReset returns true.
//
// A parent is another Context or a foreign one: any other implementation of context.Context. Before
// Arm, the end of a foreign parent and the deadline are noticed only by the methods that look at
// them (Cancelled and Err see the parent, CancelledOrExpired, Err and StopNotify see the deadline
// too). After Arm they end the context as soon as they occur.
//
// Locks are taken from child to parent.
type Context struct {
	parent    context.Context
	parentCtx *Context // parent, if it is a Context
	// nearest foreign ancestor that can end; nil if there is none
	foreign context.Context
	// nearest Context with a deadline, from this one outwards; nil if there is none
	deadlineOwner *Context
	deadline      time.Duration // by mono.Now; valid if deadlineOwner == c
	deadlineCause error         // cause of the end at the deadline; valid if deadlineOwner == c

	ended atomic.Bool

	mu         sync.Mutex     // guards the fields below, up to the blank line
	err        error          // set at the end
	cause      error          // set at the end
	notifier   CancelNotifier // nil if none is registered
	children   []*Context     // children that have not ended
	firstChild [1]*Context    // initial memory of children: most contexts have one
	// it ended before Finish, so a notification may be in progress
	endedEarly bool
	// Arm took effect; it does not without a foreign parent or deadline
	armed  bool
	disarm func() bool             // unsubscribes from foreign; nil if not subscribed
	timer  *time.Timer             // ends the context at its deadline; nil if not armed
	std    context.Context         // the standard context; nil before Done or Value
	cancel context.CancelCauseFunc // of std

	reusable bool // set by Finish; result of Reusable
}

// Begin starts the context. It must be called first, and Finish at the end of the step. The context
// ends at once if the parent has ended.
func (c *Context) Begin(parent context.Context) {
	c.parent = parent
	ctx, ok := parent.(*Context)
	switch {
	case ok:
		c.parentCtx, c.foreign, c.deadlineOwner = ctx, ctx.foreign, ctx.deadlineOwner
		ctx.addChild(c)
	case parent.Err() != nil:
		c.end(parent.Err(), context.Cause(parent))
	case parent.Done() != nil:
		c.foreign = parent
	}
}

// SetDeadline ends the context at an instant of mono.Now with a cause, unless an ancestor ends
// before. It must be called after Begin, before other goroutines use the context.
func (c *Context) SetDeadline(at time.Duration, cause error) {
	if end, ok := c.parent.Deadline(); ok && mono.Of(end) <= at {
		return
	}
	c.deadlineOwner, c.deadline, c.deadlineCause = c, at, cause
}

// Arm ends the context as soon as a foreign ancestor ends or the deadline passes, for callers that
// are going to block instead of polling. It is idempotent.
func (c *Context) Arm() {
	if c.foreign == nil && c.deadlineOwner == nil {
		return
	}
	if c.parentCtx != nil {
		c.parentCtx.Arm()
		if c.deadlineOwner != c {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed || c.ended.Load() {
		return
	}
	c.armed = true
	if c.deadlineOwner == c {
		c.timer = time.AfterFunc(c.deadline-mono.Now(), c.expire)
	}
	if c.parentCtx == nil && c.foreign != nil {
		c.disarm = context.AfterFunc(c.foreign, func() { c.end(c.foreign.Err(), context.Cause(c.foreign)) })
	}
}

// expire ends the context at its deadline.
func (c *Context) expire() { c.end(context.DeadlineExceeded, c.deadlineCause) }

// addChild registers a child, or ends it if c has ended.
func (c *Context) addChild(child *Context) {
	c.mu.Lock()
	ended, err, cause := c.ended.Load(), c.err, c.cause
	if !ended {
		if c.children == nil {
			c.children = c.firstChild[:0]
		}
		c.children = append(c.children, child)
	}
	c.mu.Unlock()
	if ended {
		child.end(err, cause)
	}
}

func (c *Context) removeChild(child *Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.children, child); i >= 0 {
		c.children = slices.Delete(c.children, i, i+1)
	}
}

// Cancel ends the context and its descendants with a cause. Only the first end counts.
func (c *Context) Cancel(cause error) { c.end(context.Canceled, cause) }

// end ends the context before Finish. The notifier runs on another goroutine, so a context may be
// ended under any lock.
func (c *Context) end(err, cause error) {
	c.mu.Lock()
	if c.ended.Load() {
		c.mu.Unlock()
		return
	}
	c.endedEarly = true
	pending := c.endLocked(err, cause)
	c.mu.Unlock()
	pending.send()
}

// notifications holds the parties to be notified of an end, after the lock has been released.
type notifications struct {
	err, cause error
	children   []*Context
	notifier   CancelNotifier
	cancel     context.CancelCauseFunc
}

// endLocked marks the context as ended and returns the notifications to send.
func (c *Context) endLocked(err, cause error) notifications {
	if cause == nil {
		cause = err
	}
	pending := notifications{err, cause, c.children, c.notifier, c.cancel}
	c.err, c.cause, c.children, c.notifier = err, cause, nil, nil
	c.ended.Store(true)
	return pending
}

// send ends the children, cancels the standard context and notifies the notifier.
func (n *notifications) send() {
	if n.cancel != nil {
		n.cancel(n.cause)
	}
	for _, child := range n.children {
		child.end(n.err, n.cause)
	}
	if n.notifier != nil {
		go n.notifier.OnCancel()
	}
}

// Notify registers the notifier of an end before StopNotify or Finish. If the context has ended, n
// is notified at once. Call Arm to be notified of foreign parents and of the deadline.
func (c *Context) Notify(n CancelNotifier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Cancelled() {
		c.endedEarly = true
		go n.OnCancel()
		return
	}
	c.notifier = n
}

// StopNotify unregisters the notifier. It reports false if the context has ended; the notifier may
// then be running.
func (c *Context) StopNotify() bool {
	c.CancelledOrExpired() // ends a context that has expired and is not armed
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifier = nil
	return !c.Cancelled()
}

// Finish ends the context at the end of its step. Only Done is notified, and the notifier is not.
func (c *Context) Finish() {
	if c.parentCtx != nil {
		c.parentCtx.removeChild(c)
	}
	if c.foreign != nil && c.foreign.Err() != nil {
		c.end(c.foreign.Err(), context.Cause(c.foreign))
	}
	var pending notifications
	c.mu.Lock()
	c.notifier = nil
	if !c.ended.Load() {
		pending = c.endLocked(context.Canceled, context.Canceled)
	}
	c.reusable = !c.endedEarly && !c.armed && c.std == nil && len(pending.children) == 0
	disarm, timer := c.disarm, c.timer
	c.mu.Unlock()
	if disarm != nil {
		disarm()
	}
	if timer != nil {
		timer.Stop()
	}
	pending.send()
}

// TryReset prepares the context for another Begin after Finish, and reports whether it did. It does
// so only if the context ended in Finish and no other goroutine can hold a reference to a part of
// it: it was not armed, and Done and Value were not called. The caller guarantees that no goroutine
// uses the Context itself.
func (c *Context) TryReset() bool {
	if !c.reusable {
		return false
	}
	c.parent, c.parentCtx, c.foreign, c.deadlineOwner, c.deadlineCause, c.err, c.cause, c.reusable = nil, nil, nil, nil, nil, nil, nil, false
	c.ended.Store(false)
	return true
}

// Reusable reports, after Finish, whether TryReset will succeed.
func (c *Context) Reusable() bool { return c.reusable }

// Cancelled reports whether the context has ended. It ignores a deadline that has passed on an
// unarmed context, and is the cheapest of all methods.
func (c *Context) Cancelled() bool {
	return c.ended.Load() || c.foreign != nil && c.foreign.Err() != nil
}

// CancelledOrExpired is Cancelled with a look at the clock (about 40 ns) if there is a deadline. It
// ends the context if the deadline has passed.
func (c *Context) CancelledOrExpired() bool {
	if c.Cancelled() {
		return true
	}
	if !c.pastDeadline() {
		return false
	}
	c.deadlineOwner.expire()
	return true
}

// pastDeadline reports whether the deadline of the context, or of an ancestor, has passed.
func (c *Context) pastDeadline() bool {
	return c.deadlineOwner != nil && mono.Now() >= c.deadlineOwner.deadline
}

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) {
	if c.deadlineOwner == c {
		return mono.Time(c.deadline), true
	}
	return c.parent.Deadline()
}

// Err implements context.Context. It ends nothing, because it is called with the locks of
// descendants held.
func (c *Context) Err() error {
	switch {
	case c.ended.Load():
	case c.pastDeadline():
		return context.DeadlineExceeded
	default:
		return c.parent.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} { return c.asStd().Done() }

// standardKey is the key with which package context asks a context for its own state, to find a
// cause or to attach a child. It is private there, so that package is made to ask for it once.
var standardKey = func() any {
	var p keyProbe
	_ = context.Cause(&p)
	return p.key
}()

// keyProbe is a context that keeps the key that it is asked for.
type keyProbe struct {
	context.Context //nolint:containedctx // it is a context itself
	key             any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}

func (p *keyProbe) Err() error { return context.Canceled }

// Value implements context.Context. Only package context's own key needs a standard context. The
// other values are those of the request.
func (c *Context) Value(key any) any {
	if key == standardKey {
		return c.asStd().Value(key)
	}
	return c.parent.Value(key)
}

// asStd returns a standard context that begins and ends with this one.
func (c *Context) asStd() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.std == nil {
		ended, parent, release := c.ended.Load(), c.parent, func() {}
		if c.deadlineOwner == c && (!ended || errors.Is(c.err, context.DeadlineExceeded)) {
			parent, release = context.WithDeadlineCause(parent, mono.Time(c.deadline), c.deadlineCause)
		}
		std, cancel := context.WithCancelCause(parent)
		c.std, c.cancel = std, func(cause error) {
			cancel(cause)
			release()
		}
		if ended {
			c.cancel(c.cause)
		}
	}
	return c.std
}
