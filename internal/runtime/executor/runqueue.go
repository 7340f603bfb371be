package executor

import (
	"sync"
	"sync/atomic"
)

// jobs are the expensive tasks of a run that have not begun, oldest first. The owner adds them and
// takes the newest, whose inputs it has just made and still has in its cache; goroutines that help
// take the oldest.
type runQueue struct {
	waiting atomic.Int32 // their number

	mu    sync.Mutex
	tasks []*task // guarded by mu
	head  int     // guarded by mu; the oldest job
}

// put adds a job and returns how many there are.
func (q *runQueue) put(t *task) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	// a queue that is never empty must not grow for ever
	if q.head > 0 && len(q.tasks) == cap(q.tasks) {
		n := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
	q.tasks = append(q.tasks, t)
	return int(q.waiting.Add(1))
}

// oldest takes the oldest job; it returns nil if there is none.
func (q *runQueue) takeOldest() *task {
	if q.waiting.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.tasks) {
		return nil
	}
	t := q.tasks[q.head]
	q.tasks[q.head] = nil
	q.head++
	q.tookLocked()
	return t
}

// newest takes the newest job; it returns nil if there is none.
func (q *runQueue) takeNewest() *task {
	if q.waiting.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.tasks) - 1
	if q.head > last {
		return nil
	}
	t := q.tasks[last]
	q.tasks[last] = nil
	q.tasks = q.tasks[:last]
	q.tookLocked()
	return t
}

func (q *runQueue) tookLocked() {
	if q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
	}
	q.waiting.Add(-1)
}
