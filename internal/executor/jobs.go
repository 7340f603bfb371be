package executor

import (
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/parallel"
)

// jobs are the expensive tasks of a run that have not begun. The owner adds them; any goroutine of the run takes them.
type jobs struct {
	mu    sync.Mutex
	queue []*task // guarded by mu
	head  int     // guarded by mu; the oldest job
}

func (j *jobs) put(t *task) {
	j.mu.Lock()
	j.queue = append(j.queue, t)
	j.mu.Unlock()
}

// take returns the oldest job, or nil.
func (j *jobs) take() *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.head == len(j.queue) {
		return nil
	}
	t := j.queue[j.head]
	j.queue[j.head] = nil
	j.head++
	if j.head == len(j.queue) {
		j.queue, j.head = j.queue[:0], 0
	}
	return t
}

// working counts the goroutines of the process that run nodes.
var working atomic.Int32

// claimCore reports whether a core is idle, and reserves it for one more goroutine.
func claimCore() bool {
	n := working.Load()
	return int(n) < parallel.Threads() && working.CompareAndSwap(n, n+1)
}
