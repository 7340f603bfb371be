// Package waitqueue lets operations wait for one another without a goroutine each.
//
// A [Monitor] guards state that operations of several steps share: a queue, an accumulator, a
// staging area. What cannot go on at once stands in a [Line] of the monitor. Whenever the state may
// have changed, those who stand at the heads of the lines are tried again, by whoever changed it. A
// wait ends with the context of its operation.
package waitqueue

import (
	"container/list"
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
)

// Outcome is what became of an attempt to go on with an operation.
type Outcome int

// The outcomes.
const (
	Blocked Outcome = iota // nothing could be done
	// something was done, after which others may be able to go on, but not everything
	Progress
	Complete // the operation is over
)

// Operation is something that may have to wait for the state behind a monitor.
type Operation struct {
	// Try goes on with the operation as far as it can, with the monitor locked. An error ends it.
	Try func() (Outcome, error)
	// Withdraw undoes what Try has done of an operation that is cancelled, with the monitor locked.
	// It may be nil.
	Withdraw func()
	// Done is called once, without the lock.
	Done func(error)
	// Cancelled is the text of the error of an operation whose context ends.
	Cancelled string
}

// Order says who in a line may go first.
type Order int

// The orders.
const (
	FIFO  Order = iota // the first alone is tried: nobody overtakes
	AnyOrder              // all are tried, in the order in which they came
)

// Monitor guards state and holds the operations that wait for it. The zero Monitor is ready to use.
type Monitor struct {
	mu    sync.Mutex
	queues []*Queue // in the order in which they are tried; complete before the first operation
}

// Line holds the operations of one kind that wait, in the order in which they came.
type Queue struct {
	monitor *Monitor
	order   Order
	waiting list.List // of *waiter, guarded by monitor.mu
}

// waiter is an operation in a line.
type waiter struct {
	Operation
	place *list.Element // in the line; nil when it has left
	stop  func() bool   // ends the watch over its context
	err   error         // of an operation that is over
}

// Line adds a line. Lines are tried in the order in which they were added.
func (m *Monitor) NewQueue(order Order) *Queue {
	q := &Queue{monitor: m, order: order}
	m.queues = append(m.queues, q)
	return q
}

// View calls f with the monitor locked; f must not change anything that an operation may wait for.
func (m *Monitor) View(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// Change calls f with the monitor locked and then lets operations go on that waited for the change.
func (m *Monitor) Change(f func()) { finish(m.change(f)) }

func (m *Monitor) change(f func()) (over []*waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	return m.settle(nil)
}

// Do starts an operation, which is over at once or later.
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
	w.place = q.waiting.PushBack(w)
	over = m.settle(nil)
	if w.place != nil {
		w.stop = context.AfterFunc(ctx, func() { finish(q.cancel(w)) })
	}
	return over
}

// cancel takes an operation out of the line whose context has ended, unless it is over.
func (q *Queue) cancel(w *waiter) (over []*waiter) {
	q.monitor.mu.Lock()
	defer q.monitor.mu.Unlock()
	if w.place == nil {
		return nil
	}
	q.withdraw(w)
	return q.monitor.settle([]*waiter{w})
}

func (q *Queue) withdraw(w *waiter) {
	if w.Withdraw != nil {
		w.Withdraw()
	}
	q.leave(w, status.Cancelledf("%s", w.Cancelled))
}

func (q *Queue) leave(w *waiter, err error) {
	q.waiting.Remove(w.place)
	w.place, w.err = nil, err
}

// Len returns the number of operations that wait. The monitor must be locked.
func (q *Queue) Len() int { return q.waiting.Len() }

// CancelAll is Change that also cancels all operations that wait in the line.
func (q *Queue) CancelAll(f func()) { finish(q.cancelAll(f)) }

func (q *Queue) cancelAll(f func()) (over []*waiter) {
	q.monitor.mu.Lock()
	defer q.monitor.mu.Unlock()
	f()
	for q.waiting.Len() > 0 {
		w := q.waiting.Front().Value.(*waiter)
		q.withdraw(w)
		over = append(over, w)
	}
	return q.monitor.settle(over)
}

// settle tries operations until none can go on, and adds those that are over to a list.
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

// advance tries the operations of the line that may go first, and reports whether one of them could
// do something.
func (q *Queue) advance(over []*waiter) (_ []*waiter, progress bool) {
	for e := q.waiting.Front(); e != nil; {
		w, next := e.Value.(*waiter), e.Next()
		outcome, err := w.attempt()
		progress = progress || outcome != Blocked
		if outcome == Complete {
			q.leave(w, err)
			over = append(over, w)
		} else if q.order == FIFO {
			break
		}
		e = next
	}
	return over, progress
}

// attempt calls Try. A panic ends the operation: whoever happens to try it is not to blame.
func (w *waiter) attempt() (outcome Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Internalf("panic in an operation that may wait: %v", v)
		}
		if err != nil {
			outcome = Complete
		}
	}()
	return w.Try()
}

// finish reports the ends of operations, which have left the monitor.
func finish(over []*waiter) {
	for _, w := range over {
		if w.stop != nil {
			w.stop()
		}
		w.Done(w.err)
	}
}
