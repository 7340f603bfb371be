package simd

import (
	"runtime"
	"testing"
	"time"
)

// A goroutine that writes to new memory can be stopped: else it delays garbage collections, and all
// goroutines that allocate memory, until it ends. On a busy machine a collection may also be slow
// for other reasons, so one of several tries has to succeed.
func TestPreemption(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 256 MiB of memory")
	}
	const elements, tries = 32 << 20, 5
	for _, l := range Levels() {
		old := Force(l)
		var took, longest time.Duration
		for range tries {
			if took, longest = collectDuring(make([]uint64, elements)); longest < took/2 {
				break
			}
		}
		if longest >= took/2 {
			t.Errorf("level %v: a collection took %v while memory was filled for %v", l, longest, took)
		}
		Force(old)
	}
}

// collectDuring collects garbage while new memory is filled. It returns the time of filling, and of
// the longest collection.
func collectDuring(dst []uint64) (took, longest time.Duration) {
	started, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		begin := time.Now()
		close(started)
		Fill(dst, 1)
		ended <- time.Since(begin)
	}()
	<-started
	for range 3 {
		begin := time.Now()
		runtime.GC()
		longest = max(longest, time.Since(begin))
	}
	return <-ended, longest
}
