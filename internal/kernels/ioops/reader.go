package ioops

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Reader gives the records of files whose names it takes from a queue, one file after the other.
type Reader struct {
	format
	name string // for errors

	turn chan struct{} // holds a token when nobody reads; who took it owns the file
	from records       // of the file in work; nil between files

	mu     sync.Mutex
	counts // guarded by mu
}

// counts is what a reader has done so far.
type counts struct {
	started, finished int64 // files
	produced          int64 // records
	work              string
}

// format is a kind of reader.
type format struct {
	open func(path string) (records, error)
	// nobody sees such a reader within a file, so that there is nothing to save but counts
	saveState bool
}

// records gives the records of a file, and io.EOF after the last, or with it where that is known.
type records interface {
	next() (*entry, error)
	close() error
}

// entry is a record with the name of its place.
type entry struct{ key, value string }

// TypeName names the resource as TensorFlow does.
func (*Reader) TypeName() string { return "N10tensorflow15ReaderInterfaceE" }

func newReader(name string, f format) *Reader {
	r := &Reader{format: f, name: name, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// workQueue is the queue that names of files come from.
type workQueue interface {
	Types() []tensor.DType
	Dequeue(ctx context.Context, done func([]tensor.Tensor, error))
}

// use calls f on a goroutine of its own when nobody else reads, and passes its error on. It ends
// with the step.
func (r *Reader) use(ctx context.Context, done func(error), f func() error) {
	go func() {
		select {
		case <-r.turn:
		case <-ctx.Done():
			done(status.FromContext(ctx, r.name))
			return
		}
		err := r.guarded(f)
		r.turn <- struct{}{}
		done(err)
	}()
}

// guarded turns a panic, which nobody else would stop on this goroutine, into an error.
func (r *Reader) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Internalf("%s panicked: %v", r.name, p)
		}
	}()
	return f()
}

// read returns up to n records: those that are left of a file, or the first of the next one that
// has any. It must have the turn.
func (r *Reader) read(ctx context.Context, q workQueue, n int64) ([]*entry, error) {
	var got []*entry
	for int64(len(got)) < n {
		if r.from == nil {
			if err := r.begin(ctx, q); err != nil {
				return nil, err
			}
		}
		rec, err := r.from.next()
		end := errors.Is(err, io.EOF)
		if rec != nil {
			got = append(got, rec)
			r.count(func(c *counts) { c.produced++ })
		}
		if end {
			r.end()
		}
		switch {
		case end && len(got) > 0:
			return got, nil
		case !end && err != nil:
			return nil, err
		}
	}
	return got, nil
}

// begin takes the name of a file from the queue and opens it.
func (r *Reader) begin(ctx context.Context, q workQueue) error {
	work, err := nextWork(ctx, q)
	r.count(func(c *counts) { c.work = work })
	if err != nil {
		return err
	}
	if r.from, err = r.open(work); err != nil {
		return err
	}
	r.count(func(c *counts) { c.started++ })
	return nil
}

// end is done with the file in work.
func (r *Reader) end() {
	r.drop()
	r.count(func(c *counts) { c.finished = c.started })
}

func (r *Reader) drop() {
	if r.from != nil {
		_ = r.from.close() // it was only read
		r.from = nil
	}
}

func (r *Reader) count(f func(*counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.counts)
}

// reset forgets the file in work and what has been done. It must have the turn.
func (r *Reader) reset() {
	r.drop()
	r.count(func(c *counts) { *c = counts{} })
}

// nextWork waits for the name of a file.
func nextWork(ctx context.Context, q workQueue) (string, error) {
	switch types := q.Types(); {
	case len(types) != 1:
		return "", status.InvalidArgumentf("Expected single component queue")
	case types[0] != tensor.String:
		return "", status.InvalidArgumentf("Expected queue with single string component")
	}
	type answer struct {
		components []tensor.Tensor
		err        error
	}
	answers := make(chan answer, 1)
	q.Dequeue(ctx, func(components []tensor.Tensor, err error) { answers <- answer{components, err} })
	a := <-answers // the queue answers when the step ends, too
	if a.err != nil {
		return "", a.err
	}
	defer a.components[0].Release()
	if a.components[0].NumElements() != 1 {
		return "", status.InvalidArgumentf("Expected to dequeue a one-element string tensor")
	}
	return tensor.Values[string](&a.components[0])[0], nil
}

// Close implements kernel.Closer: a reader that can no longer be named gives back its file.
func (r *Reader) Close() {
	select {
	case <-r.turn:
		r.drop()
		r.turn <- struct{}{}
	default: // whoever reads it keeps it; the collector closes the file
	}
}

var _ kernel.Closer = (*Reader)(nil)
