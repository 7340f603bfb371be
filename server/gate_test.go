package server

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
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

// TestCloseOfIdleGate closes gates whose steps have no time to end, and which have none.
func TestCloseOfIdleGate(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := newGate(cluster.Task{Job: "ps"}).close(ended); err != nil {
			t.Fatal(err)
		}
	}
	g := newGate(cluster.Task{Job: "ps"})
	if err := g.enter(); err != nil {
		t.Fatal(err)
	}
	if err := g.close(ended); status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("a gate with a step: %v", err)
	}
	g.leave()
}

// pass advances the virtual time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in virtual time
}
