package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/cluster"
)

// TestIdleTaskRests runs steps and checks when the task is considered idle.
func TestIdleTaskRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rests atomic.Int32
		g := newGate(cluster.Task{Job: "ps"})
		g.rest = func() { rests.Add(1) }
		at := func(what string, want int32) {
			t.Helper()
			synctest.Wait()
			if got := rests.Load(); got != want {
				t.Errorf("%s: at rest %d times, want %d", what, got, want)
			}
		}
		step := func(d time.Duration) {
			if err := g.enter(); err != nil {
				t.Fatal(err)
			}
			pass(d)
			g.leave()
		}
		for range 30 {
			step(time.Second)
		}
		at("steps without a break", 0)
		step(10 * idleTime)
		at("a long step", 0)
		pass(2 * idleTime)
		at("nothing", 1)
		pass(10 * idleTime)
		at("nothing for long", 1)
		step(time.Second)
		pass(3 * idleTime)
		at("another step", 2)
		step(time.Second)
		if err := g.close(t.Context()); err != nil {
			t.Error(err)
		}
		pass(3 * idleTime)
		at("closed", 2)
	})
}

// pass advances the virtual time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in virtual time
}
