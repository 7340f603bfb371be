package ioops

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Reader produces the records of files, one file after another, and takes the file names from a
// queue.
type Reader struct {
	format
	files fileio.Files
	name  string // for error messages

	// holds a token when the reader is idle; the receiver of the token owns the open file
	turn chan struct{}
	from records // records of the open file; nil between files

	mu     sync.Mutex
	counts // guarded by mu
}

// counts is the progress of a reader.
type counts struct {
	started, finished int64 // files
	produced          int64 // records
	work              string
}

// format describes a kind of reader.
type format struct {
	open opener
	// whether the state can be saved: such a reader is never observed within a file, so only its
	// counts need saving
	saveState bool
}

// records iterates over the records of a file. It returns io.EOF after the last record, or with it
// if the end is known.
type records interface {
	next() (*entry, error)
	// use makes the following calls end with a context.
	use(ctx context.Context)
	close() error
}

// entry is a record with its key, which names its position.
type entry struct{ key, value string }

// entrySize is the memory of an entry without its texts, in bytes.
const entrySize = 64

// TypeName names the resource as TensorFlow does.
func (*Reader) TypeName() string { return "N10tensorflow15ReaderInterfaceE" }

func newReader(name string, files fileio.Files, f format) *Reader {
	r := &Reader{format: f, files: files, name: name, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// workQueue is the queue of file names.
type workQueue interface {
	Types() []tensor.DType
	Dequeue(ctx context.Context, done func([]tensor.Tensor, error))
}

// use waits until the reader is idle, calls f on a new goroutine, and passes its error to done. The
// wait ends with the step.
func (r *Reader) use(ctx context.Context, done func(error), f func() error) {
	go func() {
		select {
		case <-r.turn:
		case <-ctx.Done():
			done(status.FromContext(ctx, "waiting for reader "+r.name))
			return
		}
		err := guard.Call(r.name, f)
		r.turn <- struct{}{}
		done(err)
	}()
}

// read returns up to n records: the rest of the open file, or the first records of the next file
// that is not empty. The caller must hold the token.
func (r *Reader) read(ctx context.Context, q workQueue, n int64) ([]*entry, error) {
	var got []*entry
	var meter membudget.Meter
	for int64(len(got)) < n {
		// records of 0 bytes need no reads, which would end with the step
		if ctx.Err() != nil {
			return nil, status.FromContext(ctx, "reading from "+r.name)
		}
		if r.from == nil {
			if err := r.begin(ctx, q); err != nil {
				return nil, err
			}
		}
		r.from.use(ctx)
		rec, err := r.from.next()
		end := errors.Is(err, io.EOF)
		if rec != nil {
			// The key of a line has the path of the file, and the line may be empty.
			meter.MustTake(entrySize + len(rec.key) + len(rec.value))
			got = membudget.Append(got, rec)
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

// begin dequeues a file name and opens the file.
func (r *Reader) begin(ctx context.Context, q workQueue) error {
	work, err := nextWork(ctx, q)
	r.count(func(c *counts) { c.work = work })
	if err != nil {
		return err
	}
	if r.from, err = r.open(r.files.In(ctx), work); err != nil {
		return err
	}
	r.count(func(c *counts) { c.started++ })
	return nil
}

// end closes the open file and counts it as finished.
func (r *Reader) end() {
	r.drop()
	r.count(func(c *counts) { c.finished = c.started })
}

func (r *Reader) drop() {
	if r.from != nil {
		_ = r.from.close() // an error does not matter after reading
		r.from = nil
	}
}

func (r *Reader) count(f func(*counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.counts)
}

// reset closes the open file and clears the counts. The caller must hold the token.
func (r *Reader) reset() {
	r.drop()
	r.count(func(c *counts) { *c = counts{} })
}

// nextWork waits for a file name.
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
	a := <-answers // the queue also answers when the step ends
	if a.err != nil {
		return "", a.err
	}
	defer a.components[0].Release()
	if a.components[0].NumElements() != 1 {
		return "", status.InvalidArgumentf("Expected to dequeue a one-element string tensor")
	}
	return tensor.Values[string](&a.components[0])[0], nil
}

// Close implements kernel.Closer. It closes the open file of a reader that is no longer reachable
// by name.
func (r *Reader) Close() {
	select {
	case <-r.turn:
		r.drop()
		r.turn <- struct{}{}
	default: // an active read keeps the file open; a finalizer closes it
	}
}

var _ kernel.Closer = (*Reader)(nil)
