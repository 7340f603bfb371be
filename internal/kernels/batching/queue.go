// Package batching holds the operations that put what several steps ask for together: their inputs
// become one batch, which is computed once, and each step has its rows of the results.
package batching

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// options say how inputs are put together.
type options struct {
	workers int           // batches that are computed at once
	largest int           // input of one step, in rows
	full    int           // batch, in rows
	wait    time.Duration // of the first input of a batch for others
	most    int           // batches that wait, among them one that is not full
	allowed []int64       // sizes of batches, ascending; none for any
	split   bool          // inputs that do not fit go to several batches
}

// padded returns the size that a batch of so many rows is filled up to.
func (o *options) padded(rows int) int {
	for _, size := range o.allowed {
		if int(size) >= rows {
			return int(size)
		}
	}
	return rows
}

// item is what one step brings, or a part of it.
type item struct {
	id     int64
	ctx    *kernel.Context
	inputs []tensor.Tensor // the item has references
	rows   int
	// computes a batch that the item is the last of, and calls done of all items in it
	process func(batch []*item)
	done    func(outputs []tensor.Tensor, err error)
	settled func() bool // calls off the removal at the end of the step
}

// finish gives the step its outputs, which done takes.
func (it *item) finish(outputs []tensor.Tensor, err error) {
	for i := range it.inputs {
		it.inputs[i].Release()
	}
	it.done(outputs, err)
}

// queue puts items together in the order in which they come.
type queue struct {
	options

	mu      sync.Mutex
	open    []*item     // guarded by mu; a batch that is not full
	rows    int         // guarded by mu; of open
	due     bool        // guarded by mu; open need not wait for more
	timer   *time.Timer // guarded by mu; makes open due
	closed  [][]*item   // guarded by mu; batches that wait to be computed
	running int         // guarded by mu; batches that are computed
}

// add puts the input of a step into a batch, or into several.
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
	for _, p := range parts {
		q.put(p)
	}
	q.dispatch()
	return nil
}

// waiting returns how many batches wait. mu is held.
func (q *queue) waiting() int { return len(q.closed) + min(len(q.open), 1) }

// put adds an item that fits into a batch. mu is held.
func (q *queue) put(it *item) {
	if q.rows+it.rows > q.full {
		q.close()
	}
	it.settled = context.AfterFunc(it.ctx.Context(), func() { q.remove(it) })
	q.open, q.rows = append(q.open, it), q.rows+it.rows
	switch {
	case q.rows >= q.full:
		q.close()
	case q.wait <= 0:
		q.due = true
	case len(q.open) == 1:
		q.timer = time.AfterFunc(q.wait, func() { q.ripen(it) })
	}
}

// close ends the open batch: it takes no more. mu is held.
func (q *queue) close() {
	if len(q.open) > 0 {
		q.closed = append(q.closed, q.take())
	}
}

// take removes the open batch. mu is held.
func (q *queue) take() []*item {
	b := q.open
	q.open, q.rows, q.due = nil, 0, false
	if q.timer != nil {
		q.timer.Stop()
	}
	return b
}

// ripen makes the open batch due that began with an item, if it is still open.
func (q *queue) ripen(first *item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) > 0 && q.open[0] == first {
		q.due = true
		q.dispatch()
	}
}

// dispatch has batches computed that wait for nothing else. mu is held.
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
		it.settled()
	}
	b[len(b)-1].process(b)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.dispatch()
}

// remove takes the item of a step that has ended out of the batch that it waits in.
func (q *queue) remove(it *item) {
	q.mu.Lock()
	found := false
	drop := func(b []*item) []*item {
		i := slices.Index(b, it)
		if i < 0 {
			return b
		}
		found = true
		return slices.Delete(slices.Clone(b), i, i+1)
	}
	if q.open = drop(q.open); found {
		q.rows -= it.rows
		if len(q.open) > 0 { // the next is the first now: it has waited nearly as long
			q.due = true
			q.dispatch()
		}
	}
	for i := range q.closed {
		q.closed[i] = drop(q.closed[i])
	}
	q.mu.Unlock()
	if found {
		it.finish(nil, status.FromContext(it.ctx.Context(), "Batching was cancelled"))
	}
}

// parts splits an item: the first part has at most the given number of rows, the others are full.
// The item is done when all parts are.
func (it *item) parts(first, full int) []*item {
	if it.rows <= first {
		return []*item{it}
	}
	var sizes []int
	if first > 0 {
		sizes = append(sizes, first)
	}
	for rest := it.rows - first; rest > 0; rest -= full {
		sizes = append(sizes, min(rest, full))
	}
	j := &joined{item: it, outputs: make([][]tensor.Tensor, len(sizes)), left: len(sizes)}
	out, lo := make([]*item, len(sizes)), 0
	for i, rows := range sizes {
		p := &item{id: it.id, ctx: it.ctx, rows: rows, process: it.process}
		p.inputs = rowsOf(it.inputs, lo, lo+rows)
		p.done = func(outputs []tensor.Tensor, err error) { j.end(i, outputs, err) }
		out[i] = p
		lo += rows
	}
	return out
}

// joined puts the results of the parts of an item together.
type joined struct {
	item *item

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
	var all []tensor.Tensor
	for c := 0; err == nil && c < len(j.outputs[0]); c++ {
		var t tensor.Tensor
		t, err = concat(j.outputs, c, 0)
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
