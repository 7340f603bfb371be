// Package rendezvous is where the tensors of one step change hands.
//
// Producers send under a key and never wait. Consumers ask under a key, before or after the tensor
// has come, and are called back. Values under one key are delivered in the order in which they were
// sent, each to one consumer.
//
// A [Table] has no goroutine: a consumer runs on the goroutine that brought its tensor, or that
// aborted the step. A call is made outside of the table's lock, so that a consumer may use the
// table.
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

// maxParked bounds the values and consumers that wait in a table. Keys come from peers as well.
const maxParked = 1 << 20

// Done receives what was asked for: the tensor, whose reference it owns, whether it is dead, or why
// it never comes.
type Done = func(t tensor.Tensor, dead bool, err error)

// Table holds the tensors of one step that nobody has asked for yet and the consumers whose tensors
// have not come. It implements kernel.Rendezvous and is safe for concurrent use. The zero Table is
// empty.
type Table struct {
	mu     sync.Mutex
	err    error           // guarded by mu; why the step ended
	queues map[place]*item // guarded by mu; the oldest item of each key; made when there is one
	parked int             // guarded by mu; items in queues
}

// place is a key in one execution of its node. It compares faster than the key's text, which loops
// would have to make anew in every iteration.
type place struct {
	prefix string
	at     kernel.FrameIter
}

// item is a value that was sent, or a consumer that waits. Items of one key are all of one sort.
type item struct {
	value tensor.Tensor
	dead  bool
	done  Done // not nil for a consumer
	next  *item
	last  *item // in the oldest item of a key
	kept  bool  // its maker still knows the item: it is not reused
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

// parsePlace splits the text of a key. Text that no node can have made is a key like any other.
func parsePlace(text string) place {
	if cut := strings.LastIndexByte(text, ';') + 1; cut > 0 {
		frame, iter, ok := strings.Cut(text[cut:], ":")
		f, errFrame := strconv.ParseUint(frame, 10, 64)
		i, errIter := strconv.ParseInt(iter, 10, 64)
		if ok && errFrame == nil && errIter == nil {
			return place{text[:cut], kernel.FrameIter{Frame: f, Iter: i}}
		}
	}
	return place{prefix: text}
}

// Send implements kernel.Rendezvous. It fails, and releases t, once the step has ended.
func (r *Table) Send(key *kernel.Key, at kernel.FrameIter, t tensor.Tensor, dead bool) error {
	return r.send(place{key.Prefix(), at}, t, dead)
}

// SendText is Send under the text of a key, as it comes over the wire.
func (r *Table) SendText(key string, t tensor.Tensor, dead bool) error {
	return r.send(parsePlace(key), t, dead)
}

func (r *Table) send(p place, t tensor.Tensor, dead bool) error {
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
	r.recv(place{key.Prefix(), at}, it)
}

// RecvText is Recv under the text of a key, as it comes over the wire.
func (r *Table) RecvText(key string, done Done) {
	it := newItem()
	it.done = done
	r.recv(parsePlace(key), it)
}

func (r *Table) recv(p place, it *item) {
	done := it.done
	value, err := r.match(p, it)
	switch {
	case err != nil:
		done(tensor.Tensor{}, false, err)
	case value != nil:
		t, dead := value.value, value.dead
		value.recycle()
		done(t, dead, nil)
	}
}

// Await waits for the tensor under the text of a key, until it comes, the step ends, or ctx does. A
// wait that is given up leaves the tensor to others.
func (r *Table) Await(ctx context.Context, key string) (t tensor.Tensor, dead bool, err error) {
	came := make(chan struct{})
	it := &item{kept: true, done: func(v tensor.Tensor, d bool, e error) {
		t, dead, err = v, d, e
		close(came)
	}}
	p := parsePlace(key)
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

// TakeText returns the oldest value under the text of a key, with its reference. It reports false
// if there is none.
func (r *Table) TakeText(key string) (t tensor.Tensor, dead, ok bool, err error) {
	p := parsePlace(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.queues[p]
	if r.err != nil || first == nil || first.done != nil {
		return t, false, r.err != nil, r.err
	}
	r.removeLocked(p, first, nil)
	t, dead = first.value, first.dead
	first.recycle()
	return t, dead, true, nil
}

// match returns the oldest item under a key if it is of the other sort than it, having removed it.
// Otherwise it parks it.
func (r *Table) match(p place, it *item) (*item, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		it.recycle()
		return nil, r.err
	}
	first := r.queues[p]
	if first != nil && (first.done == nil) != (it.done == nil) {
		r.removeLocked(p, first, nil)
		it.recycle()
		return first, nil
	}
	if r.parked == maxParked {
		it.recycle()
		return nil, status.ResourceExhaustedf("%d tensors wait in the rendezvous of one step", maxParked)
	}
	r.parked++
	if first == nil {
		if r.queues == nil {
			r.queues = map[place]*item{}
		}
		it.last = it
		r.queues[p] = it
	} else {
		first.last.next = it
		first.last = it
	}
	return nil, nil //nolint:nilnil // parked: there is neither
}

// removeLocked takes an item, which follows prev, out of its queue.
func (r *Table) removeLocked(p place, it, prev *item) {
	r.parked--
	switch {
	case prev != nil:
		prev.next = it.next
		if first := r.queues[p]; first.last == it {
			first.last = prev
		}
	case it.next == nil:
		delete(r.queues, p)
	default:
		it.next.last = it.last
		r.queues[p] = it.next
	}
}

// withdraw removes a consumer and reports whether it was still waiting.
func (r *Table) withdraw(p place, it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var prev *item
	for i := r.queues[p]; i != nil; prev, i = i, i.next {
		if i == it {
			r.removeLocked(p, it, prev)
			return true
		}
	}
	return false
}

// Abort ends the step: values are released, and every consumer, waiting or still to come, gets err.
// Only the first call counts.
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

// manyPlaces is how many keys a table may have had at once that is used again. The map of a larger
// one takes long to clear.
const manyPlaces = 64

// Reset readies the table of a step that is over for another one: what nobody has asked for is
// released. It reports false, and does nothing, if the step was aborted, if somebody still waits,
// or if the table has grown. Nobody else may use it.
func (r *Table) Reset() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || len(r.queues) > manyPlaces {
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

// Close ends a step that is over: what nobody has asked for is released.
func (r *Table) Close() { r.Abort(status.Cancelledf("The step has ended.")) }

// Parked returns how many values and consumers wait.
func (r *Table) Parked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parked
}
