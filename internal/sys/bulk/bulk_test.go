package bulk

import (
	"bytes"
	"runtime"
	"testing"
	"time"
)

func TestCopyAndClear(t *testing.T) {
	for _, n := range []int{0, 1, piece - 1, piece, piece + 1, 3*piece + 7} {
		src := bytes.Repeat([]byte{1, 2, 3}, n/3+1)[:n]
		dst := make([]byte, n+2)
		if got := Copy(dst, src); got != n || !bytes.Equal(dst[:n], src) || dst[n] != 0 {
			t.Errorf("%d bytes: %d are copied", n, got)
		}
		Clear(dst[:n])
		if bytes.ContainsFunc(dst, func(r rune) bool { return r != 0 }) {
			t.Errorf("%d bytes are not cleared", n)
		}
	}
	if got := Copy(make([]byte, 3), make([]byte, 5)); got != 3 {
		t.Errorf("%d bytes are copied into 3", got)
	}
}

// A goroutine that writes to new memory can be stopped: else it delays garbage collections, and all
// goroutines that allocate memory, until it ends.
func TestCollectionDuringCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 256 MiB of memory")
	}
	var took, longest time.Duration
	for range 5 { // on a busy machine a collection may also be slow for other reasons
		if took, longest = collectDuring(make([]byte, 256<<20)); longest < took/2 {
			return
		}
	}
	t.Errorf("a collection took %v during a copy of %v", longest, took)
}

// collectDuring collects garbage while new memory is cleared and written to. It returns the time of
// that, and of the longest collection.
func collectDuring(dst []byte) (took, longest time.Duration) {
	src := make([]byte, 1<<20)
	started, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		begin := time.Now()
		close(started)
		Clear(dst[:len(dst)/2])
		for at := len(dst) / 2; at < len(dst); at += len(src) {
			Copy(dst[at:], src)
		}
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
