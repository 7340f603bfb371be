// Package waitqueue provides asynchronous waiting for operations on shared state.
//
// A [Monitor] guards state that operations of several steps share: a queue, an accumulator, a
// staging area. An operation that cannot complete at once waits in a [Queue] of the monitor.
//
// The simple design is a mutex with a condition variable, where every waiting operation blocks a
// goroutine. It has two flaws here. An asynchronous kernel would need a goroutine of its own just
// to wait, and a blocked goroutine does not notice the cancellation of its step. So a waiting
// operation is a record with a callback. Every goroutine that changes the state retries the waiting
// operations before it unlocks the monitor, and afterwards calls those that are done.
//
// Invariants: the state is accessed with the monitor locked only. When the monitor is unlocked, no
// operation that may be tried can make progress. Done is called exactly once per operation, without
// the lock, on the goroutine that completed or cancelled it.
package waitqueue

import (
	"container/list"
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/status"
)

// Outcome is the result of one attempt to execute an operation.
type Outcome int

// The outcomes.
const (
	Blocked  Outcome = iota // nothing was done
	Progress                // a part was done, which may unblock other operations
	Complete                // the operation is over
)

// Operation is an operation that may have to wait for a change of the state.
type Operation struct {
	// Try executes the operation as far as possible. It is called with the monitor locked and must
	// not block. An error ends the operation.
	Try func() (Outcome, error)
	// Withdraw reverts the partial effects of Try if the operation is cancelled. It is called with
	// the monitor locked. It may be nil.
	Withdraw func()
	// Done is called once when the operation is over, without the lock.
	Done func(error)
	// Cancelled is the text of the error if the context of the operation ends.
	Cancelled string
}

// Order is the policy by which the operations of a queue are tried.
type Order int

// The orders.
const (
	FIFO     Order = iota // only the oldest operation is tried
	AnyOrder              // all operations are tried, oldest first
)

// Monitor guards state and holds the queues of operations that wait for it. The zero Monitor is
// ready to use. Its methods are safe for concurrent use, except that all queues must be created
// before the first operation.
type Monitor struct {
	mu     sync.Mutex
	queues []*Queue // in the order in which they are tried
}

// Queue holds waiting operations of one kind, oldest first.
type Queue struct {
	monitor *Monitor
	order   Order
	waiting list.List // of *waiter; guarded by monitor.mu
}

// waiter is an operation in a queue.
type waiter struct {
	Operation
	elem *list.Element // position in the queue; nil after it has left
	stop func() bool   // ends the watch over the context
	err  error         // result of an operation that is over
}

// NewQueue adds a queue. Queues are tried in the order in which they were added.
func (m *Monitor) NewQueue(order Order) *Queue {
	q := &Queue{monitor: m, order: order}
	m.queues = append(m.queues, q)
	return q
}

// View calls f with the monitor locked. f must not change the state that operations wait for.
func (m *Monitor) View(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// Change calls f with the monitor locked, and then retries the waiting operations.
func (m *Monitor) Change(f func()) { finish(m.change(f)) }

func (m *Monitor) change(f func()) (over []*waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	return m.settle(nil)
}

// Do starts an operation. Done is called before Do returns if the operation completes at once, or
// else later on another goroutine. The wait ends with an error of code Cancelled when ctx ends.
func (q *Queue) Do(ctx context.Context, op Operation) {
	if ctx.Err() != nil {
		op.Done(status.Cancelledf("%s", op.Cancelled))
		return
	}
	finish(q.begin(ctx, op))
}

func (q *Queue) begin(ctx context.Context, op Operation) (over []*waiter) {
	m := q.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &waiter{Operation: op}
	w.elem = q.waiting.PushBack(w)
	// The others are tried only if the state has changed: thousands may wait.
	if q.order == AnyOrder || q.waiting.Len() == 1 {
		outcome, err := w.attempt()
		if outcome == Complete {
			q.leave(w, err)
			over = []*waiter{w}
		}
		if outcome != Blocked {
			over = m.settle(over)
		}
	}
	if w.elem != nil {
		w.stop = context.AfterFunc(ctx, func() { finish(q.cancel(w)) })
	}
	return over
}

// cancel removes an operation whose context has ended from the queue, unless it is over already.
func (q *Queue) cancel(w *waiter) (over []*waiter) {
	q.monitor.mu.Lock()
	defer q.monitor.mu.Unlock()
	if w.elem == nil {
		return nil
	}
	first := q.waiting.Front() == w.elem
	q.withdraw(w)
	over = []*waiter{w}
	if w.Withdraw == nil { // The state is as before, so at most the next one can make progress.
		if q.order == AnyOrder || !first {
			return over
		}
		var progress bool
		if over, progress = q.advance(over); !progress {
			return over
		}
	}
	return q.monitor.settle(over)
}

func (q *Queue) withdraw(w *waiter) {
	if w.Withdraw != nil {
		w.Withdraw()
	}
	q.leave(w, status.Cancelledf("%s", w.Cancelled))
}

func (q *Queue) leave(w *waiter, err error) {
	q.waiting.Remove(w.elem)
	w.elem, w.err = nil, err
}

// Len returns the number of waiting operations. The monitor must be locked.
func (q *Queue) Len() int { return q.waiting.Len() }

// CancelAll calls f with the monitor locked, cancels all operations in the queue, and retries the
// others.
func (q *Queue) CancelAll(f func()) { finish(q.cancelAll(f)) }

func (q *Queue) cancelAll(f func()) (over []*waiter) {
	q.monitor.mu.Lock()
	defer q.monitor.mu.Unlock()
	f()
	for q.waiting.Len() > 0 {
		w := q.waiting.Front().Value.(*waiter)
		q.withdraw(w)
		//sizedmake:ok waiters that exist
		over = append(over, w)
	}
	return q.monitor.settle(over)
}

// settle tries the waiting operations until none can make progress. It appends those that are over
// to over.
func (m *Monitor) settle(over []*waiter) []*waiter {
	for again := true; again; {
		again = false
		for _, q := range m.queues {
			var progress bool
			over, progress = q.advance(over)
			again = again || progress
		}
	}
	return over
}

// advance tries the operations of the queue that the order allows. It reports whether any of them
// made progress.
func (q *Queue) advance(over []*waiter) (_ []*waiter, progress bool) {
	for e := q.waiting.Front(); e != nil; {
		w, next := e.Value.(*waiter), e.Next()
		outcome, err := w.attempt()
		progress = progress || outcome != Blocked
		if outcome == Complete {
			q.leave(w, err)
			//sizedmake:ok waiters that exist
			over = append(over, w)
		} else if q.order == FIFO {
			break
		}
		e = next
	}
	return over, progress
}

// attempt calls Try. A panic ends the operation with an error, because the goroutine that happens
// to try it may belong to another step.
func (w *waiter) attempt() (outcome Outcome, err error) {
	err = guard.Call("a queued operation", func() (err error) {
		outcome, err = w.Try()
		return err
	})
	if err != nil {
		outcome = Complete
	}
	return outcome, err
}

// finish calls Done of operations that have left the monitor.
func finish(over []*waiter) {
	for _, w := range over {
		if w.stop != nil {
			w.stop()
		}
		w.Done(w.err)
	}
}
