// Package queue holds what steps pass tensors to each other through: queues, barriers, accumulators
// of gradients and staging areas. Operations on them wait for one another, across steps and
// sessions, without a goroutine each (package monitor).
package queue

import (
	"context"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// element is what a queue holds many of: one tensor for each component.
type element []tensor.Tensor

func (e element) release() {
	for i := range e {
		e[i].Release()
	}
}

// Queue is a queue of any kind. Those who wait to add or to take elements do so in order.
type Queue struct {
	waitqueue.Monitor
	enqueuers, dequeuers *waitqueue.Queue

	name string
	kind *kind
	spec

	items  store // guarded by Monitor
	closed bool  // guarded by Monitor
}

// TypeName names the resource as TensorFlow does.
func (*Queue) TypeName() string { return "N10tensorflow14QueueInterfaceE" }

// unbounded is the capacity of a queue that takes any number of elements.
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

// enqueue adds elements, which it owns, as there is room for them.
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

// available returns how many elements may be taken now. The monitor is locked.
func (q *Queue) available() int {
	if q.closed {
		return q.items.len()
	}
	return max(0, q.items.len()-q.minAfter)
}

// Dequeue takes one element, which done owns.
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

// dequeueMany takes n elements, which done owns; if the queue is closed, upTo allows fewer, but not
// none.
func (q *Queue) dequeueMany(ctx context.Context, n int, upTo bool, done func([]element, error)) {
	t := &taking{queue: q, n: n, upTo: upTo}
	q.dequeuers.Do(ctx, waitqueue.Operation{
		Cancelled: "Dequeue operation was cancelled",
		Try:       t.fill,
		Withdraw:  t.giveBack,
		Done:      func(err error) { done(t.elems, err) },
	})
}

// taking is a dequeue of several elements on its way.
type taking struct {
	queue *Queue
	n     int
	upTo  bool
	elems []element
}

// fill takes what there is. A queue whose batches must be in order gives them all at once.
func (t *taking) fill() (waitqueue.Outcome, error) {
	q := t.queue
	missing, have := t.n-len(t.elems), q.items.len()
	if q.closed && have < missing {
		t.giveBack()
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

// giveBack puts elements back where they were.
func (t *taking) giveBack() {
	for _, v := range slices.Backward(t.elems) {
		t.queue.items.unpop(v)
	}
	t.elems = nil
}

// close lets nobody add elements any more, once those who wait to are through, or at once if their
// operations are cancelled.
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

// size returns the number of elements that are in the queue.
func (q *Queue) size() (n int) {
	q.View(func() { n = q.items.len() })
	return n
}

func (q *Queue) isClosed() (closed bool) {
	q.View(func() { closed = q.closed })
	return closed
}
