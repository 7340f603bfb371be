package executor

import (
	"sync"
	"sync/atomic"
)

// runQueue holds the expensive tasks of a run that have not started, oldest first. The owner adds
// tasks and takes the newest: it has just produced the inputs of that task, so they are in the
// cache of its core. Helper goroutines take the oldest.
type runQueue struct {
	waiting atomic.Int32 // number of queued tasks

	mu    sync.Mutex
	tasks []*task // guarded by mu
	head  int     // index of the oldest task; guarded by mu
}

// put adds a task and returns the number of queued tasks.
func (q *runQueue) put(t *task) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Move the tasks to the front, or a queue that is never empty would grow forever.
	if q.head > 0 && len(q.tasks) == cap(q.tasks) {
		n := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
	q.tasks = append(q.tasks, t)
	return int(q.waiting.Add(1))
}

// takeOldest removes and returns the oldest task, or nil if the queue is empty.
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

// takeNewest removes and returns the newest task, or nil if the queue is empty.
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
