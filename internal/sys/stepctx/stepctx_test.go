package stepctx_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/internal/sys/stepctx"
)

var errCause = errors.New("cause")

// parents returns a parent of each kind, and a function that ends it with errCause.
var parents = map[string]func() (context.Context, func()){
	"standard": func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(context.Background())
		return ctx, func() { cancel(errCause) }
	},
	"Context": func() (context.Context, func()) {
		c := new(stepctx.Context)
		c.Begin(context.Background())
		return c, func() { c.Cancel(errCause) }
	},
	"Context with a standard context": func() (context.Context, func()) {
		c := new(stepctx.Context)
		c.Begin(context.Background())
		c.Done()
		return c, func() { c.Cancel(errCause) }
	},
}

// notified is a CancelNotifier. It is closed by the notification.
type notified chan struct{}

func (n notified) OnCancel() { close(n) }

func TestEndOfParentEndsContext(t *testing.T) {
	for name, parent := range parents {
		for _, waits := range []bool{false, true} {
			ctx, end := parent()
			var c stepctx.Context
			c.Begin(ctx)
			c.Arm()
			if waits {
				c.Done()
			}
			ended := make(notified)
			c.Notify(ended)
			if c.Cancelled() || c.Err() != nil {
				t.Errorf("%s: cancelled before the end", name)
			}
			end()
			<-ended
			<-c.Done()
			if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), errCause) {
				t.Errorf("%s: cancelled %t, error %v, cause %v", name, c.Cancelled(), c.Err(), context.Cause(&c))
			}
			if c.StopNotify() {
				t.Errorf("%s: StopNotify succeeds after the end", name)
			}
			c.Finish()
			var late stepctx.Context
			late.Begin(ctx)
			lateEnded := make(notified)
			late.Notify(lateEnded)
			<-lateEnded
			if !errors.Is(context.Cause(&late), errCause) {
				t.Errorf("%s: begun after the end of the parent: cause %v", name, context.Cause(&late))
			}
		}
	}
}

func TestFinish(t *testing.T) {
	for name, parent := range parents {
		ctx, end := parent()
		var c stepctx.Context
		c.Begin(ctx)
		c.Notify(make(notified)) // must not be notified
		inner, cancel := context.WithCancel(&c)
		defer cancel()
		if !c.StopNotify() {
			t.Errorf("%s: cancelled before the end", name)
		}
		c.Finish()
		<-inner.Done()
		if !errors.Is(c.Err(), context.Canceled) || ctx.Err() != nil {
			t.Errorf("%s: error %v, of the parent %v", name, c.Err(), ctx.Err())
		}
		end()
		c.Cancel(errCause)
		if !errors.Is(context.Cause(&c), context.Canceled) {
			t.Errorf("%s: Cancel after Finish changes the cause to %v", name, context.Cause(&c))
		}
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	var c stepctx.Context
	c.Begin(ctx)
	defer c.Finish()
	if at, ok := c.Deadline(); !ok || !at.Equal(time.Unix(1, 0)) {
		t.Errorf("got deadline %v, %t", at, ok)
	}
	if !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(&c), context.DeadlineExceeded) {
		t.Errorf("error %v, cause %v", c.Err(), context.Cause(&c))
	}
}

// Children begin and finish while their parent is cancelled.
func TestConcurrentEnds(t *testing.T) {
	for range 200 {
		var outer stepctx.Context
		outer.Begin(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var c stepctx.Context
				c.Begin(&outer)
				wg.Go(func() { <-c.Done() })
				wg.Go(func() { _ = c.Err() })
				c.Finish()
			})
		}
		wg.Go(func() { outer.Cancel(errCause) })
		wg.Wait()
		outer.Finish()
	}
}

func TestUnusedContextsAllocateNothing(t *testing.T) {
	var outer, inner [1001]stepctx.Context
	i := 0
	n := testing.AllocsPerRun(len(outer)-1, func() {
		outer[i].Begin(context.Background())
		inner[i].Begin(&outer[i])
		if inner[i].Cancelled() || inner[i].Err() != nil {
			t.Error("cancelled before the end")
		}
		inner[i].Finish()
		outer[i].Finish()
		i++
	})
	if n != 0 {
		t.Errorf("two contexts allocate %v times", n)
	}
}

// Polling notices the end of a foreign parent without Arm.
func TestEndOfParentWithoutArm(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	var outer, inner stepctx.Context
	outer.Begin(parent)
	inner.Begin(&outer)
	if inner.Cancelled() {
		t.Error("cancelled before the end")
	}
	cancel(errCause)
	for _, c := range []*stepctx.Context{&outer, &inner} {
		if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), errCause) {
			t.Errorf("cancelled %t, error %v, cause %v", c.Cancelled(), c.Err(), context.Cause(c))
		}
		ended := make(notified)
		c.Notify(ended)
		<-ended
		if c.StopNotify() {
			t.Error("StopNotify succeeds after the end")
		}
	}
	inner.Finish()
	outer.Finish()
}

// Arm of a child subscribes to the foreign parent of its ancestor.
func TestArmOfChild(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	var outer, inner stepctx.Context
	outer.Begin(parent)
	inner.Begin(&outer)
	ended := make(notified)
	inner.Notify(ended)
	inner.Arm()
	cancel(errCause)
	<-ended
	if !errors.Is(context.Cause(&inner), errCause) {
		t.Errorf("cause %v", context.Cause(&inner))
	}
	inner.Finish()
	outer.Finish()
}

func TestTryReset(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, use := range map[string]func(*stepctx.Context){
		"cancelled":  func(c *stepctx.Context) { c.Cancel(errCause) },
		"waited for": func(c *stepctx.Context) { c.Done() },
		"armed":      func(c *stepctx.Context) { c.Arm() },
		"unfinished": nil,
	} {
		var c stepctx.Context
		c.Begin(parent)
		if use != nil {
			use(&c)
			c.Finish()
		}
		if c.TryReset() {
			t.Errorf("a context that was %s is reset", name)
		}
		c.Finish()
	}
	var c stepctx.Context
	for range 3 {
		c.Begin(parent)
		if c.Cancelled() {
			t.Error("cancelled after Begin")
		}
		c.Finish()
		if !c.TryReset() {
			t.Error("an unused context is not reset")
		}
	}
}

func TestBeginAfterEndOfParent(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	var c stepctx.Context
	c.Begin(parent)
	defer c.Finish()
	if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), errCause) {
		t.Errorf("cancelled %v, error %v, cause %v", c.Cancelled(), c.Err(), context.Cause(&c))
	}
}

// past is a deadline that has passed.
func past() time.Duration { return mono.Now() - 1 }

// hour is a deadline in an hour.
func hour() time.Duration { return mono.Now() + time.Hour }

// A deadline ends the context and its children, for every way to ask.
func TestSetDeadline(t *testing.T) {
	for name, ask := range map[string]func(*stepctx.Context) bool{
		"polled":     (*stepctx.Context).CancelledOrExpired,
		"Err":        func(c *stepctx.Context) bool { return c.Err() != nil },
		"Done":       func(c *stepctx.Context) bool { <-c.Done(); return true },
		"StopNotify": func(c *stepctx.Context) bool { return !c.StopNotify() },
	} {
		var outer, inner stepctx.Context
		outer.Begin(t.Context())
		outer.SetDeadline(past(), errCause)
		inner.Begin(&outer)
		ended := make(notified)
		outer.Notify(ended)
		if inner.Cancelled() {
			t.Errorf("%s: Cancelled reads the clock", name)
		}
		if !ask(&inner) || !errors.Is(inner.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(&inner), errCause) {
			t.Errorf("%s: error %v, cause %v", name, inner.Err(), context.Cause(&inner))
		}
		if !inner.CancelledOrExpired() {
			t.Errorf("%s: CancelledOrExpired reports false", name)
		}
		<-ended
		ordinary, cancel := context.WithCancel(&inner)
		if !errors.Is(ordinary.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: derived context: error %v", name, ordinary.Err())
		}
		cancel()
		inner.Finish()
		outer.Finish()
		if outer.TryReset() {
			t.Errorf("%s: an expired context is reset", name)
		}
	}
}

func TestDeadlineInTheFuture(t *testing.T) {
	var outer, inner stepctx.Context
	outer.Begin(t.Context())
	at := hour()
	outer.SetDeadline(at, errCause)
	inner.Begin(&outer)
	if end, ok := inner.Deadline(); !ok || time.Until(end) > time.Hour || time.Until(end) <= 0 {
		t.Errorf("deadline %v, %t", end, ok)
	}
	if inner.CancelledOrExpired() || inner.Err() != nil || !inner.StopNotify() {
		t.Error("cancelled before the deadline")
	}
	outer.Cancel(errCause)
	if !errors.Is(inner.Err(), context.Canceled) || !errors.Is(context.Cause(&outer), errCause) {
		t.Errorf("error %v, cause %v", inner.Err(), context.Cause(&outer))
	}
	inner.Finish()
	outer.Finish()
}

// The earliest of several deadlines applies.
func TestEarliestDeadlineApplies(t *testing.T) {
	parent, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	var c stepctx.Context
	c.Begin(parent)
	c.SetDeadline(hour(), errCause)
	if end, _ := c.Deadline(); !end.Equal(time.Unix(1, 0)) {
		t.Errorf("deadline %v", end)
	}
	c.Finish()
	var outer, inner stepctx.Context
	outer.Begin(t.Context())
	outer.SetDeadline(past(), errCause)
	inner.Begin(&outer)
	inner.SetDeadline(hour(), context.Canceled)
	if !inner.CancelledOrExpired() || !errors.Is(context.Cause(&inner), errCause) {
		t.Errorf("cause %v", context.Cause(&inner))
	}
	inner.Finish()
	outer.Finish()
}

// An armed context notifies at its deadline, and not after Finish.
func TestArmedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outer, inner stepctx.Context
		outer.Begin(t.Context())
		outer.SetDeadline(hour(), errCause)
		inner.Begin(&outer)
		inner.Arm()
		ended := make(notified)
		inner.Notify(ended)
		start := time.Now()
		<-ended
		if took := time.Since(start); took != time.Hour || !errors.Is(context.Cause(&inner), errCause) {
			t.Errorf("notified after %v of %v", took, context.Cause(&inner))
		}
		inner.Finish()
		outer.Finish()

		var c stepctx.Context
		c.Begin(t.Context())
		c.SetDeadline(hour(), errCause)
		c.Arm()
		c.Done()
		c.Notify(make(notified)) // must not be notified
		c.Finish()
		time.Sleep(2 * time.Hour) //nolint:forbidigo // in a synctest bubble
		if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), context.Canceled) {
			t.Errorf("error %v, cause %v", c.Err(), context.Cause(&c))
		}
	})
}

func TestReuseWithDeadlinesAllocatesNothing(t *testing.T) {
	var outer, inner stepctx.Context
	n := testing.AllocsPerRun(100, func() {
		outer.Begin(context.Background())
		outer.SetDeadline(hour(), errCause)
		inner.Begin(&outer)
		if inner.CancelledOrExpired() || !inner.StopNotify() {
			t.Error("cancelled before the end")
		}
		inner.Finish()
		outer.Finish()
		if !inner.TryReset() || !outer.TryReset() {
			t.Error("an unused context is not reset")
		}
	})
	if n != 0 {
		t.Errorf("two contexts allocate %v times", n)
	}
}

type parentKey struct{}

// The value of a request is found without a standard context.
func TestValueAllocatesNothing(t *testing.T) {
	parent := context.WithValue(t.Context(), parentKey{}, "v")
	var outer, c stepctx.Context
	outer.Begin(parent)
	c.Begin(&outer)
	defer outer.Finish()
	defer c.Finish()
	if allocs := testing.AllocsPerRun(100, func() {
		if c.Value(parentKey{}) != "v" {
			t.Fatal("the value is not found")
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
