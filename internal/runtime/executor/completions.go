package executor

import "sync/atomic"

// completionQueue holds the finished tasks of a run until the owner takes them. It also records
// whether the run has an owner. The zero queue is empty and owned.
//
// The simple design is a mutex around a list and an owner flag, or a channel. Both need a second
// check to decide which of two goroutines continues: the owner that is about to leave, or the one
// that has just finished a task. Here a single atomic pointer holds the list and the flag, so every
// transition is one compare-and-swap:
//
//   - head == nil: empty, and the run has an owner.
//   - head is a task: the newest finished task, and the run has an owner.
//   - head == unowned: empty, and the run has no owner.
//
// So a finished task is never left in the queue of a run without an owner.
type completionQueue struct{ head atomic.Pointer[task] }

// unowned is the head of a queue without an owner.
var unowned = new(task)

// push adds a finished task, on any goroutine. If it returns true, the caller has become the owner
// of the run. Otherwise the caller must not access the task or the run again, except through a
// reference it holds.
func (q *completionQueue) push(t *task) (owner bool) {
	for {
		head := q.head.Load()
		if head == unowned {
			t.next = nil
		} else {
			t.next = head
		}
		if q.head.CompareAndSwap(head, t) {
			return head == unowned
		}
	}
}

// release gives up the ownership. It returns false, and the caller stays the owner, if a task has
// been pushed. Only the owner may call it.
func (q *completionQueue) release() bool { return q.head.CompareAndSwap(nil, unowned) }

// take removes all finished tasks and returns them linked by next, oldest first. Only the owner may
// call it.
func (q *completionQueue) take() *task {
	if q.head.Load() == nil {
		return nil
	}
	var oldest *task
	for t := q.head.Swap(nil); t != nil; {
		t.next, oldest, t = oldest, t, t.next
	}
	return oldest
}
