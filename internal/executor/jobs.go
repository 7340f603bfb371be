package executor

import (
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/parallel"
)

// jobs are the expensive tasks of a run that have not begun, oldest first. The owner adds them; any goroutine of the run
// takes them.
type jobs struct {
	waiting atomic.Int32 // their number

	mu    sync.Mutex
	queue []*task // guarded by mu
	head  int     // guarded by mu; the oldest job
}

// put adds a job and returns how many there are.
func (j *jobs) put(t *task) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, t)
	return int(j.waiting.Add(1))
}

// take returns the oldest job, or nil.
func (j *jobs) take() *task {
	if j.waiting.Load() == 0 {
		return nil
	}
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
	j.waiting.Add(-1)
	return t
}

// working counts the goroutines of the process that run nodes.
var working atomic.Int32

// claimCore reports whether a core is idle, and reserves it for one more goroutine.
func claimCore() bool {
	n := working.Load()
	return int(n) < parallel.Threads() && working.CompareAndSwap(n, n+1)
}
