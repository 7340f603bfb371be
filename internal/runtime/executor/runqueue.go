package executor

import (
	"sync"
	"sync/atomic"
)

// jobs are the expensive tasks of a run that have not begun, oldest first. The owner adds them and
// takes the newest, whose inputs it has just made and still has in its cache; goroutines that help
// take the oldest.
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
	// a queue that is never empty must not grow for ever
	if j.head > 0 && len(j.queue) == cap(j.queue) {
		n := copy(j.queue, j.queue[j.head:])
		clear(j.queue[n:])
		j.queue, j.head = j.queue[:n], 0
	}
	j.queue = append(j.queue, t)
	return int(j.waiting.Add(1))
}

// oldest takes the oldest job; it returns nil if there is none.
func (j *jobs) oldest() *task {
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
	j.tookLocked()
	return t
}

// newest takes the newest job; it returns nil if there is none.
func (j *jobs) newest() *task {
	if j.waiting.Load() == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := len(j.queue) - 1
	if j.head > last {
		return nil
	}
	t := j.queue[last]
	j.queue[last] = nil
	j.queue = j.queue[:last]
	j.tookLocked()
	return t
}

func (j *jobs) tookLocked() {
	if j.head == len(j.queue) {
		j.queue, j.head = j.queue[:0], 0
	}
	j.waiting.Add(-1)
}
