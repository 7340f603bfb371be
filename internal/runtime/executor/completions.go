package executor

import "sync/atomic"

// inbox holds the finished tasks of a run until the owner takes them, and the ownership while
// nobody has it. The zero inbox is empty and owned.
type completionQueue struct{ head atomic.Pointer[task] }

// unowned is the head of an inbox that nobody owns. Such an inbox is empty.
var unowned = new(task)

// push adds a finished task. It reports whether the caller has become the owner by it; otherwise
// the caller must not touch the run any more.
func (b *completionQueue) push(t *task) (owner bool) {
	for {
		head := b.head.Load()
		if head == unowned {
			t.next = nil
		} else {
			t.next = head
		}
		if b.head.CompareAndSwap(head, t) {
			return head == unowned
		}
	}
}

// release gives up the ownership, unless a task has come in.
func (b *completionQueue) release() bool { return b.head.CompareAndSwap(nil, unowned) }

// take returns the tasks that have come in, oldest first, linked by next.
func (b *completionQueue) take() *task {
	if b.head.Load() == nil {
		return nil
	}
	var oldest *task
	for t := b.head.Swap(nil); t != nil; {
		t.next, oldest, t = oldest, t, t.next
	}
	return oldest
}
