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

var errWhy = errors.New("why")

// parents are lives of all kinds within which a life can be, with what ends them because of errWhy.
var parents = map[string]func() (context.Context, func()){
	"ordinary": func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(context.Background())
		return ctx, func() { cancel(errWhy) }
	},
	"lifetime": func() (context.Context, func()) {
		c := new(stepctx.Context)
		c.Begin(context.Background())
		return c, func() { c.Cancel(errWhy) }
	},
	"lifetime that somebody waits for": func() (context.Context, func()) {
		c := new(stepctx.Context)
		c.Begin(context.Background())
		c.Done()
		return c, func() { c.Cancel(errWhy) }
	},
}

// told is an Ender.
type told chan struct{}

func (t told) OnCancel() { close(t) }

func TestLifeEndsWithItsParent(t *testing.T) {
	for name, parent := range parents {
		for _, waits := range []bool{false, true} {
			ctx, end := parent()
			var c stepctx.Context
			c.Begin(ctx)
			c.Arm()
			if waits {
				c.Done()
			}
			ended := make(told)
			c.Notify(ended)
			if c.Cancelled() || c.Err() != nil {
				t.Errorf("%s: over before its end", name)
			}
			end()
			<-ended
			<-c.Done()
			if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), errWhy) {
				t.Errorf("%s: over %t, error %v, cause %v", name, c.Cancelled(), c.Err(), context.Cause(&c))
			}
			if c.StopNotify() {
				t.Errorf("%s: silenced after its end", name)
			}
			c.Finish()
			var late stepctx.Context
			late.Begin(ctx)
			lateEnded := make(told)
			late.Notify(lateEnded)
			<-lateEnded
			if !errors.Is(context.Cause(&late), errWhy) {
				t.Errorf("%s: within a life that was over: cause %v", name, context.Cause(&late))
			}
		}
	}
}

func TestLifeEndsAtItsTime(t *testing.T) {
	for name, parent := range parents {
		ctx, end := parent()
		var c stepctx.Context
		c.Begin(ctx)
		c.Notify(make(told)) // which would be closed
		inner, cancel := context.WithCancel(&c)
		defer cancel()
		if !c.StopNotify() {
			t.Errorf("%s: over before its end", name)
		}
		c.Finish()
		<-inner.Done()
		if !errors.Is(c.Err(), context.Canceled) || ctx.Err() != nil {
			t.Errorf("%s: error %v, of the parent %v", name, c.Err(), ctx.Err())
		}
		end()
		c.Cancel(errWhy)
		if !errors.Is(context.Cause(&c), context.Canceled) {
			t.Errorf("%s: a later end counts: %v", name, context.Cause(&c))
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

// Lives begin and end while those around them do.
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
		wg.Go(func() { outer.Cancel(errWhy) })
		wg.Wait()
		outer.Finish()
	}
}

func TestQuietLivesAllocateNothing(t *testing.T) {
	var outer, inner [1001]stepctx.Context
	i := 0
	n := testing.AllocsPerRun(len(outer)-1, func() {
		outer[i].Begin(context.Background())
		inner[i].Begin(&outer[i])
		if inner[i].Cancelled() || inner[i].Err() != nil {
			t.Error("over before its end")
		}
		inner[i].Finish()
		outer[i].Finish()
		i++
	})
	if n != 0 {
		t.Errorf("two lives allocate %v times", n)
	}
}

// Who does not wait sees the end of a parent that nobody watches.
func TestEndOfParentThatNobodyWatches(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	var outer, inner stepctx.Context
	outer.Begin(parent)
	inner.Begin(&outer)
	if inner.Cancelled() {
		t.Error("over before its end")
	}
	cancel(errWhy)
	for _, c := range []*stepctx.Context{&outer, &inner} {
		if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), errWhy) {
			t.Errorf("over %t, error %v, cause %v", c.Cancelled(), c.Err(), context.Cause(c))
		}
		ended := make(told)
		c.Notify(ended)
		<-ended
		if c.StopNotify() {
			t.Error("silenced after its end")
		}
	}
	inner.Finish()
	outer.Finish()
}

// Who waits for an inner life is told of the end of what is around the outermost.
func TestWatchFromWithin(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	var outer, inner stepctx.Context
	outer.Begin(parent)
	inner.Begin(&outer)
	ended := make(told)
	inner.Notify(ended)
	inner.Arm()
	cancel(errWhy)
	<-ended
	if !errors.Is(context.Cause(&inner), errWhy) {
		t.Errorf("cause %v", context.Cause(&inner))
	}
	inner.Finish()
	outer.Finish()
}

func TestRenew(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, live := range map[string]func(*stepctx.Context){
		"cancelled":  func(c *stepctx.Context) { c.Cancel(errWhy) },
		"waited for": func(c *stepctx.Context) { c.Done() },
		"watched":    func(c *stepctx.Context) { c.Arm() },
		"not over":   nil,
	} {
		var c stepctx.Context
		c.Begin(parent)
		if live != nil {
			live(&c)
			c.Finish()
		}
		if c.TryReset() {
			t.Errorf("a life that was %s begins again", name)
		}
		c.Finish()
	}
	var c stepctx.Context
	for range 3 {
		c.Begin(parent)
		if c.Cancelled() {
			t.Error("over at its beginning")
		}
		c.Finish()
		if !c.TryReset() {
			t.Error("a quiet life does not begin again")
		}
	}
}

func TestParentThatIsOver(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	cancel(errWhy)
	var c stepctx.Context
	c.Begin(parent)
	defer c.Finish()
	if !c.Cancelled() || !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), errWhy) {
		t.Errorf("over %v, %v because of %v", c.Cancelled(), c.Err(), context.Cause(&c))
	}
}

// past is a limit that is over.
func past() time.Duration { return mono.Now() - 1 }

// hour is a limit that is not.
func hour() time.Duration { return mono.Now() + time.Hour }

// A life has its limit, and so have those within it, for all who ask.
func TestLimit(t *testing.T) {
	for name, ask := range map[string]func(*stepctx.Context) bool{
		"checked":    (*stepctx.Context).CancelledOrExpired,
		"asked":      func(c *stepctx.Context) bool { return c.Err() != nil },
		"waited for": func(c *stepctx.Context) bool { <-c.Done(); return true },
		"silenced":   func(c *stepctx.Context) bool { return !c.StopNotify() },
	} {
		var outer, inner stepctx.Context
		outer.Begin(t.Context())
		outer.SetDeadline(past(), errWhy)
		inner.Begin(&outer)
		ended := make(told)
		outer.Notify(ended)
		if inner.Cancelled() {
			t.Errorf("%s: a life ends at a limit that nobody has looked at", name)
		}
		if !ask(&inner) || !errors.Is(inner.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(&inner), errWhy) {
			t.Errorf("%s: error %v, cause %v", name, inner.Err(), context.Cause(&inner))
		}
		if !inner.CancelledOrExpired() {
			t.Errorf("%s: not over when checked", name)
		}
		<-ended
		ordinary, cancel := context.WithCancel(&inner)
		if !errors.Is(ordinary.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: within it: error %v", name, ordinary.Err())
		}
		cancel()
		inner.Finish()
		outer.Finish()
		if outer.TryReset() {
			t.Errorf("%s: a life that ended at its limit begins again", name)
		}
	}
}

func TestLimitThatIsFar(t *testing.T) {
	var outer, inner stepctx.Context
	outer.Begin(t.Context())
	at := hour()
	outer.SetDeadline(at, errWhy)
	inner.Begin(&outer)
	if end, ok := inner.Deadline(); !ok || time.Until(end) > time.Hour || time.Until(end) <= 0 {
		t.Errorf("deadline %v, %t", end, ok)
	}
	if inner.CancelledOrExpired() || inner.Err() != nil || !inner.StopNotify() {
		t.Error("over before its limit")
	}
	outer.Cancel(errWhy)
	if !errors.Is(inner.Err(), context.Canceled) || !errors.Is(context.Cause(&outer), errWhy) {
		t.Errorf("error %v, cause %v", inner.Err(), context.Cause(&outer))
	}
	inner.Finish()
	outer.Finish()
}

// The earliest of several limits counts.
func TestLimitAfterDeadline(t *testing.T) {
	parent, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	var c stepctx.Context
	c.Begin(parent)
	c.SetDeadline(hour(), errWhy)
	if end, _ := c.Deadline(); !end.Equal(time.Unix(1, 0)) {
		t.Errorf("deadline %v", end)
	}
	c.Finish()
	var outer, inner stepctx.Context
	outer.Begin(t.Context())
	outer.SetDeadline(past(), errWhy)
	inner.Begin(&outer)
	inner.SetDeadline(hour(), context.Canceled)
	if !inner.CancelledOrExpired() || !errors.Is(context.Cause(&inner), errWhy) {
		t.Errorf("cause %v", context.Cause(&inner))
	}
	inner.Finish()
	outer.Finish()
}

// Who waits is told of the limit when it comes, and of nothing after the end.
func TestWatchedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outer, inner stepctx.Context
		outer.Begin(t.Context())
		outer.SetDeadline(hour(), errWhy)
		inner.Begin(&outer)
		inner.Arm()
		ended := make(told)
		inner.Notify(ended)
		start := time.Now()
		<-ended
		if took := time.Since(start); took != time.Hour || !errors.Is(context.Cause(&inner), errWhy) {
			t.Errorf("told after %v of %v", took, context.Cause(&inner))
		}
		inner.Finish()
		outer.Finish()

		var c stepctx.Context
		c.Begin(t.Context())
		c.SetDeadline(hour(), errWhy)
		c.Arm()
		c.Done()
		c.Notify(make(told)) // which would be closed
		c.Finish()
		time.Sleep(2 * time.Hour) //nolint:forbidigo // in a bubble
		if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(&c), context.Canceled) {
			t.Errorf("error %v, cause %v", c.Err(), context.Cause(&c))
		}
	})
}

func TestQuietLivesWithLimitsBeginAgain(t *testing.T) {
	var outer, inner stepctx.Context
	n := testing.AllocsPerRun(100, func() {
		outer.Begin(context.Background())
		outer.SetDeadline(hour(), errWhy)
		inner.Begin(&outer)
		if inner.CancelledOrExpired() || !inner.StopNotify() {
			t.Error("over before its end")
		}
		inner.Finish()
		outer.Finish()
		if !inner.TryReset() || !outer.TryReset() {
			t.Error("a quiet life does not begin again")
		}
	})
	if n != 0 {
		t.Errorf("two lives allocate %v times", n)
	}
}
