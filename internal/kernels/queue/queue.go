// Package queue implements queues, barriers, gradient accumulators and staging areas, through which
// steps exchange tensors. Operations wait for one another across steps and sessions without a
// goroutine each (package waitqueue).
package queue

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// element is one queue element: one tensor for each component.
type element []tensor.Tensor

func (e element) release() {
	for i := range e {
		e[i].Release()
	}
}

// Queue is a queue of any kind. Waiting enqueue and dequeue operations are served in order.
type Queue struct {
	waitqueue.Monitor
	enqueuers, dequeuers *waitqueue.Queue

	name string
	kind *kind
	spec

	items  store // guarded by Monitor
	held   held  // guarded by Monitor
	closed bool  // guarded by Monitor
}

// TypeName names the resource as TensorFlow does.
func (*Queue) TypeName() string { return "N10tensorflow14QueueInterfaceE" }

// unbounded is the capacity of a queue without a limit.
const unbounded = math.MaxInt32

// newQueue returns an empty queue.
func newQueue(name string, k *kind, s spec) *Queue {
	q := &Queue{name: name, kind: k, spec: s, items: k.store(s)}
	q.enqueuers, q.dequeuers = q.NewQueue(waitqueue.FIFO), q.NewQueue(waitqueue.FIFO)
	return q
}

func (q *Queue) closedError() error {
	return status.Cancelledf("%s '%s' is closed.", q.kind.name, q.name)
}

func (q *Queue) emptyError(requested, have int) error {
	return status.OutOfRangef("%s '%s' is closed and has insufficient elements (requested %d, current size %d)",
		q.kind.name, q.name, requested, have)
}

// Types returns the types of the components.
func (q *Queue) Types() []tensor.DType { return q.types }

// enqueue adds elements, which it owns, as capacity becomes available.
func (q *Queue) enqueue(ctx context.Context, elems []element, done func(error)) {
	next := 0
	q.enqueuers.Do(ctx, waitqueue.Operation{
		Cancelled: "Enqueue operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if q.closed {
				return waitqueue.Complete, q.closedError()
			}
			first := next
			for ; next < len(elems) && q.items.len() < q.capacity; next++ {
				q.held.mustAdd(q.items.len(), len(q.types))
				q.items.push(elems[next])
			}
			switch next {
			case len(elems):
				return waitqueue.Complete, nil
			case first:
				return waitqueue.Blocked, nil
			}
			return waitqueue.Progress, nil
		},
		Done: func(err error) {
			for ; next < len(elems); next++ {
				elems[next].release()
			}
			done(err)
		},
	})
}

// available returns the number of elements that may be dequeued. The monitor must be locked.
func (q *Queue) available() int {
	if q.closed {
		return q.items.len()
	}
	return max(0, q.items.len()-q.minAfter)
}

// Dequeue removes one element and passes it to done, which owns it.
func (q *Queue) Dequeue(ctx context.Context, done func([]tensor.Tensor, error)) {
	var elem element
	q.dequeuers.Do(ctx, waitqueue.Operation{
		Cancelled: "Dequeue operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			switch {
			case q.available() > 0:
				elem = q.items.pop()
				return waitqueue.Complete, nil
			case q.closed:
				return waitqueue.Complete, q.emptyError(1, 0)
			}
			return waitqueue.Blocked, nil
		},
		Done: func(err error) { done(elem, err) },
	})
}

// dequeueMany removes n elements and passes them to done, which owns them. If the queue is closed
// and upTo is true, it may return fewer, but at least one.
func (q *Queue) dequeueMany(ctx context.Context, n int, upTo bool, done func([]element, error)) {
	t := &pendingDequeue{queue: q, n: n, upTo: upTo}
	q.dequeuers.Do(ctx, waitqueue.Operation{
		Cancelled: "Dequeue operation was cancelled",
		Try:       t.fill,
		Withdraw:  t.putBack,
		Done:      func(err error) { done(t.elems, err) },
	})
}

// pendingDequeue is a dequeue of several elements in progress.
type pendingDequeue struct {
	queue *Queue
	n     int
	upTo  bool
	elems []element
}

// fill takes the available elements. A queue with atOnce takes all elements of a batch at once.
func (t *pendingDequeue) fill() (waitqueue.Outcome, error) {
	q := t.queue
	missing, have := t.n-len(t.elems), q.items.len()
	if q.closed && have < missing {
		t.putBack()
		if !t.upTo || q.items.len() == 0 {
			return waitqueue.Complete, q.emptyError(missing, have)
		}
		t.n = q.items.len()
		missing = t.n
	}
	take := min(missing, q.available())
	if q.kind.atOnce && take < missing {
		return waitqueue.Blocked, nil
	}
	for range take {
		//sizedmake:ok elements that are held
		t.elems = append(t.elems, q.items.pop())
	}
	switch {
	case take == missing:
		return waitqueue.Complete, nil
	case take > 0:
		return waitqueue.Progress, nil
	}
	return waitqueue.Blocked, nil
}

// putBack returns elements to their positions in the queue.
func (t *pendingDequeue) putBack() {
	for _, v := range slices.Backward(t.elems) {
		t.queue.items.unpop(v)
	}
	t.elems = nil
}

// close rejects new enqueues. It completes when the pending ones have ended; with cancelPending it
// cancels them.
func (q *Queue) close(ctx context.Context, cancelPending bool, done func(error)) {
	if cancelPending {
		q.enqueuers.CancelAll(func() { q.closed = true })
		done(nil)
		return
	}
	q.enqueuers.Do(ctx, waitqueue.Operation{
		Cancelled: "Close operation was cancelled",
		Try: func() (waitqueue.Outcome, error) {
			if q.closed {
				return waitqueue.Complete, status.Cancelledf("Queue '%s' is already closed.", q.name)
			}
			q.closed = true
			return waitqueue.Complete, nil
		},
		Done: done,
	})
}

// size returns the number of elements in the queue.
func (q *Queue) size() (n int) {
	q.View(func() { n = q.items.len() })
	return n
}

func (q *Queue) isClosed() (closed bool) {
	q.View(func() { closed = q.closed })
	return closed
}
