package queue

import (
	"context"
	"math"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Barrier assembles elements from components that are inserted separately under a key. Complete
// elements are taken in the order in which their keys were first inserted.
type Barrier struct {
	waitqueue.Monitor
	takers *waitqueue.Queue

	name   string
	types  []tensor.DType // of the components
	shapes []tensor.PartialShape

	// Guarded by Monitor.
	incomplete map[string]*partial
	ready      *priorities // complete elements; each starts with its index and its key
	next       int64       // index of the next new key
	closed     bool        // closed to new keys
	cancelled  bool        // closed, and incomplete elements have been dropped
}

// partial is an incomplete element.
type partial struct {
	index      int64
	key        tensor.Tensor
	components element
	missing    int
}

// TypeName names the resource as TensorFlow does.
func (*Barrier) TypeName() string { return "N10tensorflow7barrier7BarrierE" }

func newBarrier(name string, types []tensor.DType, shapes []tensor.PartialShape) *Barrier {
	b := &Barrier{
		name: name, types: types, shapes: shapes,
		incomplete: map[string]*partial{}, ready: &priorities{}, next: math.MinInt64,
	}
	b.takers = b.NewQueue(waitqueue.FIFO)
	return b
}

// keyMemory is about the memory of a component of a new element, with its key and the entries in
// the map and the heap, in bytes.
const keyMemory = 512

// insert adds one component, the rows of values, to the elements of the given keys. After an error,
// the keys before the failing one remain inserted. The account pays for what the barrier holds.
func (b *Barrier) insert(a *membudget.Account, keys []string, component int, values *tensor.Tensor) (err error) {
	// Small tensors may use all of the limit, and near it each of them waits for a collection of
	// garbage. What stays in the barrier asks for all of its memory before.
	membudget.MustTake(int64(len(keys)) * (keyMemory + int64(len(b.types))*headerMemory))
	b.Change(func() {
		if b.closed && (b.cancelled || len(keys) > 0 && len(b.incomplete) == 0) {
			err = status.Cancelledf("Barrier %s is closed.  Pending enqueues cancelled: %d.  Number of new insertions: %d.  "+
				"Number of incomplete keys: %d.", b.name, bit(b.cancelled), len(keys), len(b.incomplete))
			return
		}
		known := len(b.incomplete) + b.ready.len()
		for i, key := range keys {
			if err = b.insertOne(a, key, component, values, i); err != nil {
				break
			}
		}
		if len(b.incomplete)+b.ready.len() > known {
			b.next++
		}
	})
	return err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// named returns what an error says of a key, which may be any text.
func named(key string) string {
	const most = 1000 // bytes
	return key[:min(len(key), most)]
}

func (b *Barrier) insertOne(a *membudget.Account, key string, component int, values *tensor.Tensor, i int) error {
	p := b.incomplete[key]
	switch {
	case p == nil && b.closed:
		return status.Cancelledf("Barrier %s is closed, but attempted to insert a brand new key: %s.  Pending enqueues cancelled: %d.  "+
			"Insertion index: %d.  Number of incomplete keys: %d.", b.name, named(key), bit(b.cancelled), i, len(b.incomplete))
	case p != nil && p.components[component].Initialized():
		return status.InvalidArgumentf("Key %s already has a value for component %d in barrier %s", named(key), component, b.name)
	}
	value, err := paidRow(a, values, i)
	if err != nil {
		return err
	}
	if p == nil {
		//sizedmake:ok components of an element
		p = &partial{index: b.next, key: tensor.Scalar(key), components: make(element, len(b.types)), missing: len(b.types)}
		if err := resource.Charge(a, &p.key); err != nil {
			value.Release()
			return err
		}
		b.incomplete[key] = p
	}
	p.components[component] = value
	if p.missing--; p.missing == 0 {
		delete(b.incomplete, key)
		b.ready.push(append(element{tensor.Scalar(p.index), p.key}, p.components...))
	}
	return nil
}

// take removes n complete elements at once and passes them to done, which owns them. If the barrier
// is closed and small is true, it may take fewer, but at least one.
func (b *Barrier) take(ctx context.Context, n int, small bool, done func([]element, error)) {
	t := &pendingTake{barrier: b, n: n, small: small}
	b.View(func() { t.late = b.closed })
	b.takers.Do(ctx, waitqueue.Operation{
		Cancelled: "Dequeue operation was cancelled",
		Try:       t.try,
		Done:      func(err error) { done(t.elems, err) },
	})
}

// pendingTake is a take in progress.
type pendingTake struct {
	barrier *Barrier
	n       int
	small   bool
	late    bool // whether the take began after the barrier was closed
	elems   []element
}

func (t *pendingTake) try() (waitqueue.Outcome, error) {
	b := t.barrier
	ready, n := b.ready.len(), t.n
	if b.closed && t.small && (t.late || len(b.incomplete) == 0) {
		n = min(n, ready)
	}
	if b.closed {
		available := ready
		if !t.small {
			available += len(b.incomplete)
		}
		if available < max(n, 1) && (t.late || len(b.incomplete) == 0 || !t.small) {
			return waitqueue.Complete, t.closedError(n, available)
		}
	}
	if ready < n {
		return waitqueue.Blocked, nil
	}
	for range n {
		//sizedmake:ok elements that are held
		t.elems = append(t.elems, b.ready.pop())
	}
	return waitqueue.Complete, nil
}

// closedError returns the error of takes that were waiting when the barrier was closed. It names
// the queue that TensorFlow's barrier contains.
func (t *pendingTake) closedError(n, available int) error {
	if t.late {
		return status.OutOfRangef("Barrier '%s' is closed and has insufficient elements (requested %d, total size %d)",
			t.barrier.name, n, available)
	}
	return status.OutOfRangef("PriorityQueue '%s_queue' is closed and has insufficient elements (requested %d, current size %d)",
		t.barrier.name, t.n, available)
}

// close rejects new keys. Incomplete elements may still be completed unless cancel is true.
func (b *Barrier) close(cancel bool) (err error) {
	b.Change(func() {
		if b.closed && (b.cancelled || !cancel) {
			err = status.Cancelledf("Barrier '%s' is already closed.", b.name)
			return
		}
		b.closed, b.cancelled = true, cancel
		if cancel {
			for _, p := range b.incomplete {
				p.components.release()
			}
			clear(b.incomplete)
		}
	})
	return err
}

func (b *Barrier) readySize() (n int) {
	b.View(func() { n = b.ready.len() })
	return n
}

func (b *Barrier) incompleteSize() (n int) {
	b.View(func() { n = len(b.incomplete) })
	return n
}
