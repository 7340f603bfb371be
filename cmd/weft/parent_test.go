package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilOrphaned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(7)
		getppid := func() int { return int(parent.Load()) }
		if _, _, err := untilOrphaned(t.Context(), 8, getppid); err == nil {
			t.Error("no error for a process that is not the parent")
		}
		orphaned, stop, err := untilOrphaned(t.Context(), 7, getppid)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		select {
		case <-orphaned.Done():
			t.Fatal("ended although the parent runs")
		case <-time.After(time.Hour):
		}
		parent.Store(1)
		select {
		case <-orphaned.Done():
		case <-time.After(2 * parentInterval):
			t.Error("does not end with the parent")
		}
	})
}

func TestUntilOrphanedEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	orphaned, stop, err := untilOrphaned(ctx, 7, func() int { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-orphaned.Done()
	stop()
}
