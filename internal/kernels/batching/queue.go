// Package batching implements the operations that combine requests of several steps: their inputs
// form one batch, which is computed once, and each step receives its rows of the results.
package batching

import (
	"context"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// options configures how inputs are batched.
type options struct {
	workers int           // maximum number of batches in process
	largest int           // maximum rows of one step's input
	full    int           // maximum rows of a batch
	wait    time.Duration // maximum time that the first input of a batch waits for others
	most    int           // maximum number of waiting batches, including the open one
	allowed []int64       // permitted batch sizes, ascending; empty if unrestricted
	split   bool          // whether inputs that do not fit are split between batches
}

// padded returns the size to which a batch of the given rows is padded.
func (o *options) padded(rows int) int {
	for _, size := range o.allowed {
		if int(size) >= rows {
			return int(size)
		}
	}
	return rows
}

// item is the input of one step, or a part of it.
type item struct {
	id     int64
	ctx    *kernel.Context
	inputs []tensor.Tensor // references owned by the item
	rows   int
	// computes the batch whose last item is this one, and calls done of all its items
	process func(batch []*item)
	done    func(outputs []tensor.Tensor, err error)
	// cancels the removal at the end of the step; reports whether it was in time; nil for a part,
	// whose whole has it
	settled func() bool
	whole   *joined // nil if the item is not a part
	// finish was called; used by one goroutine at a time
	finished bool
}

// finish passes the outputs to the step; done takes ownership of them.
func (it *item) finish(outputs []tensor.Tensor, err error) {
	it.finished = true
	for i := range it.inputs {
		it.inputs[i].Release()
	}
	it.done(outputs, err)
}

// queue batches items in the order of their arrival.
type queue struct {
	options

	mu      sync.Mutex
	open    []*item     // the batch being filled; guarded by mu
	rows    int         // rows in open; guarded by mu
	due     bool        // whether open need not wait for more items; guarded by mu
	timer   *time.Timer // sets due; guarded by mu
	closed  [][]*item   // batches that wait to be computed; guarded by mu
	running int         // number of batches being computed; guarded by mu
}

// add adds the input of a step to one batch or several.
func (q *queue) add(it *item) error {
	if it.rows > q.largest {
		return status.InvalidArgumentf("Task size %d is larger than maximum input batch size %d", it.rows, q.largest)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	parts := []*item{it}
	if q.split {
		room := (q.most-len(q.closed))*q.full - q.rows
		if it.rows > room {
			return status.Unavailablef("The batch scheduling queue to which this task was submitted is full; task size is %d but scheduling "+
				"capacity is only %d (num_enqueued_batches=%d, max_enqueued_batches=%d)", it.rows, room, q.waiting(), q.most)
		}
		parts = it.parts(q.full-q.rows, q.full)
	} else if q.rows+it.rows > q.full && q.waiting() >= q.most {
		return status.Unavailablef("The batch scheduling queue to which this task was submitted is full; currently %d batches enqueued and "+
			"max_enqueued_batches is %d", q.waiting(), q.most)
	}
	if whole := parts[0].whole; whole != nil {
		whole.settled = q.removeAtEnd(it.ctx, func(p *item) bool { return p.whole == whole })
	}
	for _, p := range parts {
		q.put(p)
	}
	q.dispatch()
	return nil
}

// waiting returns the number of waiting batches. mu must be held.
func (q *queue) waiting() int { return len(q.closed) + min(len(q.open), 1) }

// put adds an item that fits into the open batch. mu must be held.
func (q *queue) put(it *item) {
	if q.rows+it.rows > q.full {
		q.close()
	}
	if it.whole == nil {
		it.settled = q.removeAtEnd(it.ctx, func(p *item) bool { return p == it })
	}
	q.open, q.rows = append(q.open, it), q.rows+it.rows
	switch {
	case q.rows >= q.full:
		q.close()
	case q.wait <= 0:
		q.due = true
	case len(q.open) == 1:
		q.timer = time.AfterFunc(q.wait, func() { q.markDue(it) })
	}
}

// close closes the open batch to further items. mu must be held.
func (q *queue) close() {
	if len(q.open) > 0 {
		q.closed = append(q.closed, q.take())
	}
}

// take removes and returns the open batch. mu must be held.
func (q *queue) take() []*item {
	b := q.open
	q.open, q.rows, q.due = nil, 0, false
	if q.timer != nil {
		q.timer.Stop()
	}
	return b
}

// markDue marks the open batch as due if its first item is still the given one.
func (q *queue) markDue(first *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) > 0 && q.open[0] == first {
		q.due = true
		q.dispatch()
	}
}

// dispatch starts the batches that are ready, up to the number of workers. mu must be held.
func (q *queue) dispatch() {
	for q.running < q.workers {
		var b []*item
		switch {
		case len(q.closed) > 0:
			b, q.closed = q.closed[0], q.closed[1:]
		case q.due && len(q.open) > 0:
			b = q.take()
		default:
			return
		}
		if len(b) == 0 { // all steps have ended
			continue
		}
		q.running++
		go q.compute(b)
	}
}

func (q *queue) compute(b []*item) {
	for _, it := range b {
		if it.settled != nil {
			it.settled()
		}
	}
	err := guard.Call("a batch", func() error {
		b[len(b)-1].process(b)
		return nil
	})
	for _, it := range b {
		if !it.finished {
			it.finish(nil, err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.dispatch()
}

// removeAtEnd removes the items of a step when it ends. mine reports whether an item is one of
// them. settled cancels that. An item may have a million parts, which are removed at once.
func (q *queue) removeAtEnd(ctx *kernel.Context, mine func(*item) bool) (settled func() bool) {
	return context.AfterFunc(ctx.Context(), func() {
		for _, it := range q.remove(mine) {
			it.finish(nil, status.FromContext(ctx.Context(), "waiting for a batch"))
		}
	})
}

// remove removes items of an ended step from their batches and returns them.
func (q *queue) remove(mine func(*item) bool) (removed []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	drop := func(b []*item) []*item {
		if !slices.ContainsFunc(b, mine) {
			return b
		}
		var kept []*item
		for _, it := range b {
			//sizedmake:ok items, whose memory was asked for
			if mine(it) {
				removed = append(removed, it)
			} else {
				kept = append(kept, it)
			}
		}
		return kept
	}
	if q.open = drop(q.open); len(removed) > 0 {
		for _, it := range removed {
			q.rows -= it.rows
		}
		if len(q.open) > 0 { // the next item, which has waited nearly as long, becomes the first
			q.due = true
			q.dispatch()
		}
	}
	for i := range q.closed {
		q.closed[i] = drop(q.closed[i])
	}
	return removed
}

// partMemory is about the memory of a part of an item, in bytes, without its tensors.
const partMemory = 500

// parts splits an item. The first part has at most the given number of rows; the others are full
// batches. The item completes when all parts have completed.
func (it *item) parts(first, full int) []*item {
	if it.rows <= first {
		return []*item{it}
	}
	var sizes []int
	if first > 0 {
		sizes = append(sizes, first)
	}
	for rest := it.rows - first; rest > 0; rest -= full {
		sizes = membudget.Append(sizes, min(rest, full))
	}
	j := &joined{item: it, outputs: membudget.Make[[]tensor.Tensor](len(sizes)), left: len(sizes)}
	out, lo := membudget.Make[*item](len(sizes)), 0
	var meter membudget.Meter
	for i, rows := range sizes {
		meter.MustTake(partMemory + len(it.inputs)*int(unsafe.Sizeof(tensor.Tensor{})))
		p := &item{id: it.id, ctx: it.ctx, rows: rows, process: it.process, whole: j}
		p.inputs = rowsOf(it.inputs, lo, lo+rows)
		p.done = func(outputs []tensor.Tensor, err error) { j.end(i, outputs, err) }
		out[i] = p
		lo += rows
	}
	return out
}

// joined concatenates the results of the parts of an item.
type joined struct {
	item    *item
	settled func() bool // cancels the removal of the parts at the end of the step

	mu      sync.Mutex
	outputs [][]tensor.Tensor // guarded by mu
	left    int               // guarded by mu
	err     error             // guarded by mu
}

func (j *joined) end(i int, outputs []tensor.Tensor, err error) {
	j.mu.Lock()
	j.outputs[i] = outputs
	if j.err == nil {
		j.err = err
	}
	j.left--
	last, err := j.left == 0, j.err
	j.mu.Unlock()
	if !last {
		return
	}
	j.settled()
	var all []tensor.Tensor
	for c := 0; err == nil && c < len(j.outputs[0]); c++ {
		var t tensor.Tensor
		t, err = concat(j.outputs, c, 0)
		//sizedmake:ok one for each output
		all = append(all, t)
	}
	for _, outputs := range j.outputs {
		for c := range outputs {
			outputs[c].Release()
		}
	}
	if err != nil {
		all = nil
	}
	j.item.finish(all, err)
}
