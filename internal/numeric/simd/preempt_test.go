package simd

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A goroutine that writes to new memory can be stopped: else it delays garbage collections, and all
// goroutines that allocate memory, until it ends. A collection that starts while memory is filled
// must therefore end first. On a busy machine a collection may also be slow for other reasons, so
// one of several tries has to succeed.
func TestPreemption(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 256 MiB of memory")
	}
	const elements, tries = 32 << 20, 20
	for _, l := range Levels() {
		old := Force(l)
		stopped := false
		for try := 0; try < tries && !stopped; try++ {
			stopped = collectedDuring(make([]uint64, elements))
		}
		if !stopped {
			t.Errorf("level %v: no collection ended before memory was filled", l)
		}
		Force(old)
	}
}

// collectedDuring collects garbage while new memory is filled. It reports whether the collection
// ended first.
func collectedDuring(dst []uint64) bool {
	var filled atomic.Bool
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		close(started)
		Fill(dst, 1)
		filled.Store(true)
		close(ended)
	}()
	<-started
	runtime.GC()
	first := !filled.Load()
	<-ended
	return first
}
