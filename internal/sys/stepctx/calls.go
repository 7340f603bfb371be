package stepctx

import (
	"context"
	"sync/atomic"
)

// Calls counts the calls of functions that are in progress in a step. All of its kernels share it,
// also those in calls with a context of their own. The zero Calls has no step that can end. Its
// methods may be called concurrently, except that Of is called first.
type Calls struct {
	step *Context // nil if it is not a Context
	live atomic.Int64

	failed atomic.Pointer[error] // error of the call that exceeded a limit
}

// Of begins the count for a step with the given context.
func (c *Calls) Of(step context.Context) {
	c.step, _ = step.(*Context)
	c.failed.Store(nil)
}

// Begin counts one more call and returns the number of calls in progress. The caller must call End.
func (c *Calls) Begin() int64 { return c.live.Add(1) }

// End ends one call.
func (c *Calls) End() { c.live.Add(-1) }

// Fail makes Err return an error from now on, because a call would have exceeded a limit. Only the
// first error counts.
func (c *Calls) Fail(err error) { c.failed.CompareAndSwap(nil, &err) }

// Err returns the error of Fail, or the cause of the end of the step; nil if calls may begin.
// Unlike the context of a call it does not depend on the order in which nested calls are cancelled:
// when there are many, their parts would begin calls faster than their contexts are cancelled.
func (c *Calls) Err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	if c.step == nil || !c.step.CancelledOrExpired() {
		return nil
	}
	return context.Cause(c.step)
}
