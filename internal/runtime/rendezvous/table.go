// Package rendezvous exchanges the tensors of one step between producers and consumers.
//
// A producer sends a tensor under a key and never waits. A consumer requests a key, before or after
// the tensor is sent, and is called back.
//
// The simple design is a channel per key, on which a goroutine per consumer waits. Most consumers
// are asynchronous kernels, so such a goroutine would exist only to call a callback, and its
// wake-up would cost more than the rest of a small step. A [Table] therefore has no goroutine. A
// consumer is called on the goroutine that sends its tensor or aborts the step.
//
// Invariants:
//
//   - The queue of a key holds values or consumers, never both: a send or a request first looks for
//     its counterpart.
//   - Values under one key are delivered in the order in which they were sent, each to one
//     consumer.
//   - A consumer is called exactly once, with a tensor or the error that ended the step. The
//     table's lock is not held during the call, so a consumer may use the table.
//   - After the end of the step the table stores nothing: values are released, and consumers
//     receive the error at once.
package rendezvous

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxParked bounds the values and consumers in a table. Peers choose keys too, so without a bound
// they could exhaust the memory of the task.
const maxParked = 1 << 20

// Done is the callback of a consumer. It receives the tensor, whose reference it owns, and whether
// the tensor is dead, or the error that ended the step.
type Done = func(t tensor.Tensor, dead bool, err error)

// Table holds the tensors of one step that no consumer has requested and the consumers whose
// tensors have not been sent. It implements kernel.Rendezvous and is safe for concurrent use. The
// zero Table is empty.
type Table struct {
	mu     sync.Mutex
	err    error              // error that ended the step; guarded by mu
	queues map[tableKey]*item // oldest item of each key; created with the first item; guarded by mu
	parked int                // number of items in queues; guarded by mu
}

// tableKey is a key in one execution of its node. Its comparison is cheaper than that of the key's
// text, and a loop needs no new text in every iteration.
type tableKey struct {
	prefix string
	at     kernel.FrameIter
}

// item is a value that was sent or a consumer that waits. The queue of a key holds items of one
// kind only.
type item struct {
	value tensor.Tensor
	// read when the value is delivered, in place of value; may be nil
	variable *kernel.Variable
	dead     bool
	done     Done // nil for a value
	next     *item
	prev     *item
	last     *item // newest item of the key; set in the oldest item only
	parked   bool  // in a queue
	kept     bool  // its creator still refers to it, so it must not be recycled
}

var items = sync.Pool{New: func() any { return new(item) }}

func newItem() *item { return items.Get().(*item) }

func (i *item) recycle() {
	if !i.kept {
		*i = item{}
		items.Put(i)
	}
}

// New returns an empty table.
func New() *Table { return &Table{} }

// NewForStep is [New] with the type of [kernel.Step.NewRendezvous].
func NewForStep() kernel.Rendezvous { return New() }

// parseKey splits the text of a key into its prefix and its frame and iteration. A text without
// them is a key with the zero frame and iteration.
func parseKey(text string) tableKey {
	if cut := strings.LastIndexByte(text, ';') + 1; cut > 0 {
		frame, iter, ok := strings.Cut(text[cut:], ":")
		f, errFrame := strconv.ParseUint(frame, 10, 64)
		i, errIter := strconv.ParseInt(iter, 10, 64)
		if ok && errFrame == nil && errIter == nil {
			return tableKey{text[:cut], kernel.FrameIter{Frame: f, Iter: i}}
		}
	}
	return tableKey{prefix: text}
}

// Send implements kernel.Rendezvous. After the end of the step it releases t and returns an error.
func (r *Table) Send(key *kernel.Key, at kernel.FrameIter, t tensor.Tensor, dead bool) error {
	return r.send(tableKey{key.Prefix(), at}, t, dead)
}

// SendText is [Table.Send] under the text of a key, as it is received from the network.
func (r *Table) SendText(key string, t tensor.Tensor, dead bool) error {
	return r.send(parseKey(key), t, dead)
}

// SendVariable implements kernel.Rendezvous.
func (r *Table) SendVariable(key *kernel.Key, at kernel.FrameIter, v *kernel.Variable) error {
	it := newItem()
	it.variable = v
	waiting, err := r.match(tableKey{key.Prefix(), at}, it)
	if waiting == nil {
		return err
	}
	done := waiting.done
	waiting.recycle()
	done(v.Load(), false, nil)
	return nil
}

// take returns the value of an item, with its reference.
func (i *item) take() tensor.Tensor {
	if i.variable != nil {
		return i.variable.Load()
	}
	return i.value
}

func (r *Table) send(p tableKey, t tensor.Tensor, dead bool) error {
	it := newItem()
	it.value, it.dead = t, dead
	waiting, err := r.match(p, it)
	if waiting == nil {
		if err != nil {
			t.Release()
		}
		return err
	}
	done := waiting.done
	waiting.recycle()
	done(t, dead, nil)
	return nil
}

// Recv implements kernel.Rendezvous.
func (r *Table) Recv(key *kernel.Key, at kernel.FrameIter, done func(t tensor.Tensor, dead bool, err error)) {
	it := newItem()
	it.done = done
	r.recv(tableKey{key.Prefix(), at}, it)
}

// RecvText is [Table.Recv] under the text of a key, as it is received from the network.
func (r *Table) RecvText(key string, done Done) {
	it := newItem()
	it.done = done
	r.recv(parseKey(key), it)
}

func (r *Table) recv(p tableKey, it *item) {
	done := it.done
	value, err := r.match(p, it)
	switch {
	case err != nil:
		done(tensor.Tensor{}, false, err)
	case value != nil:
		t, dead := value.take(), value.dead
		value.recycle()
		done(t, dead, nil)
	}
}

// Await waits for the tensor under the text of a key, until it is sent, the step ends, or ctx ends.
// If ctx ends first, the tensor stays available to other consumers.
func (r *Table) Await(ctx context.Context, key string) (t tensor.Tensor, dead bool, err error) {
	came := make(chan struct{})
	it := &item{kept: true, done: func(v tensor.Tensor, d bool, e error) {
		t, dead, err = v, d, e
		close(came)
	}}
	p := parseKey(key)
	r.recv(p, it)
	select {
	case <-came:
	case <-ctx.Done():
		if r.withdraw(p, it) {
			return tensor.Tensor{}, false, status.Cancelledf("RecvAsync is cancelled.")
		}
		<-came
	}
	return t, dead, err
}

// TakeText returns the oldest value under the text of a key, with its reference. It does not wait;
// ok is false if there is no value.
func (r *Table) TakeText(key string) (t tensor.Tensor, dead, ok bool, err error) {
	p := parseKey(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.queues[p]
	if r.err != nil || first == nil || first.done != nil {
		return t, false, r.err != nil, r.err
	}
	r.removeLocked(p, first)
	t, dead = first.take(), first.dead
	first.recycle()
	return t, dead, true, nil
}

// match looks for the counterpart of it under a key: a consumer for a value, or a value for a
// consumer. It removes and returns the oldest counterpart and recycles it. If there is none, it
// parks it and returns nil.
func (r *Table) match(p tableKey, it *item) (*item, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		it.recycle()
		return nil, r.err
	}
	first := r.queues[p]
	if first != nil && (first.done == nil) != (it.done == nil) {
		r.removeLocked(p, first)
		it.recycle()
		return first, nil
	}
	if r.parked == maxParked {
		it.recycle()
		return nil, status.ResourceExhaustedf("The rendezvous of one step holds %d tensors already", maxParked)
	}
	r.parked++
	it.parked = true
	if first == nil {
		if r.queues == nil {
			r.queues = map[tableKey]*item{}
		}
		it.last = it
		r.queues[p] = it
	} else {
		it.prev = first.last
		first.last.next = it
		first.last = it
	}
	return nil, nil //nolint:nilnil // the item was parked
}

// removeLocked removes an item from its queue.
func (r *Table) removeLocked(p tableKey, it *item) {
	r.parked--
	it.parked = false
	switch {
	case it.prev != nil:
		it.prev.next = it.next
		if it.next != nil {
			it.next.prev = it.prev
		} else {
			r.queues[p].last = it.prev
		}
	case it.next == nil:
		delete(r.queues, p)
	default:
		it.next.prev, it.next.last = nil, it.last
		r.queues[p] = it.next
	}
}

// withdraw removes a consumer. It returns false if the consumer has been called or is about to be
// called.
func (r *Table) withdraw(p tableKey, it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || !it.parked { // Abort has taken all items
		return false
	}
	r.removeLocked(p, it)
	return true
}

// Abort ends the step with an error: it releases all values, and every consumer, waiting or later,
// receives err. Only the first call has an effect.
func (r *Table) Abort(err error) {
	r.mu.Lock()
	if r.err != nil {
		r.mu.Unlock()
		return
	}
	r.err = err
	queues := r.queues
	r.queues, r.parked = nil, 0
	r.mu.Unlock()
	for _, it := range queues {
		for it != nil {
			next, done := it.next, it.done
			it.value.Release()
			it.recycle()
			if done != nil {
				done(tensor.Tensor{}, false, err)
			}
			it = next
		}
	}
}

// maxReusedKeys bounds the keys in a table that is reused. Clearing a map takes time proportional
// to the largest size it has had.
const maxReusedKeys = 64

// Reset prepares the table of a finished step for another step and releases the values that no
// consumer has requested. It returns false, and the table must be discarded, if the step was
// aborted, if a consumer is waiting, or if the table has grown too large. No other goroutine may
// use the table.
func (r *Table) Reset() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || len(r.queues) > maxReusedKeys {
		return false
	}
	for _, it := range r.queues {
		if it.done != nil {
			return false
		}
	}
	for _, it := range r.queues {
		for it != nil {
			following := it.next
			it.value.Release()
			it.recycle()
			it = following
		}
	}
	clear(r.queues)
	r.parked = 0
	return true
}

// Close ends a step that is over and releases the values that no consumer has requested.
func (r *Table) Close() { r.Abort(status.Cancelledf("The step has ended.")) }

// Parked returns the number of values and consumers in the table.
func (r *Table) Parked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parked
}
