package data

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Iterator is the resource that steps take elements from. Requests are answered one at a time.
type Iterator struct {
	spec

	turn chan struct{} // holds a token while nobody uses what follows
	data dataset       // nil before the first MakeIterator
	made tensor.Tensor // the variant of data
	at   iterator
	life context.Context // of at
	ends *ending         // of at

	unordered bool // the options of data have deterministic = false

	mu     sync.Mutex
	closed bool               // guarded by mu
	stop   context.CancelFunc // guarded by mu; ends the life of at
}

func newIterator(s spec) *Iterator {
	it := &Iterator{spec: s, turn: make(chan struct{}, 1), ends: &ending{}}
	it.turn <- struct{}{}
	return it
}

// TypeName names the resource as TensorFlow does.
func (*Iterator) TypeName() string { return "N10tensorflow4data16IteratorResourceE" }

// Close ends what works ahead for the iterator.
func (it *Iterator) Close() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.closed = true
	if it.stop != nil {
		it.stop()
	}
	it.ends.run()
}

// renew gives the iterator a new life, after the end of the one before, and returns the first
// request in it.
func (it *Iterator) renew(ctx *kernel.Context) *run {
	life, stop := context.WithCancel(context.Background())
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.stop != nil {
		it.stop()
	}
	it.ends.run()
	if it.stop = stop; it.closed {
		stop()
	}
	it.life = life
	return it.request(ctx)
}

// request returns a request of a node to the iterator.
func (it *Iterator) request(ctx *kernel.Context) *run {
	r := newRun(ctx, it.life, it.ends)
	r.unordered = it.unordered
	return r
}

// use calls f on a goroutine of its own when it is the turn of the request, and passes its error
// on.
func (it *Iterator) use(ctx *kernel.Context, done func(error), f func() error) {
	go func() {
		select {
		case <-it.turn:
		case <-ctx.Context().Done():
			done(status.FromContext(ctx.Context(), "Iterator was cancelled"))
			return
		}
		err := guarded(f)
		it.turn <- struct{}{}
		done(err)
	}()
}

// guarded turns a panic, which on this goroutine nobody else would stop, into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Internalf("iterator panicked: %v", p)
		}
	}()
	return f()
}

// reset goes to the beginning of a dataset.
func (it *Iterator) reset(ctx *kernel.Context, t *tensor.Tensor) error {
	d, err := datasetOf(t)
	if err != nil {
		return err
	}
	if len(it.types) > 0 {
		if err := it.check(d.elementSpec()); err != nil {
			return err
		}
	}
	options := options(d)
	if asksForParallelMaps(options) {
		parallel, err := parallelized(it.request(ctx), t)
		if err != nil {
			return err
		}
		defer parallel.Release()
		t = &parallel
		if d, err = datasetOf(t); err != nil {
			return err
		}
	}
	if err := checkAsserted(t, []string{"Root"}); err != nil {
		return err
	}
	it.unordered = allowsAnyOrder(options)
	r := it.renew(ctx)
	at, err := d.iterate(r)
	if err != nil {
		return err
	}
	it.data, it.made, it.at = d, t.Retain(), at
	return nil
}

// next returns the next element, of which the node says what it should be.
func (it *Iterator) next(ctx *kernel.Context, want *spec) (element, error) {
	if it.at == nil {
		return nil, status.FailedPreconditionf("GetNext() failed because the iterator has not been initialized. " +
			"Ensure that you have run the initializer operation for this iterator before getting the next element.")
	}
	e, err := it.at.next(it.request(ctx))
	if err != nil {
		return nil, err
	}
	if err := want.check(specOf(e)); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// save returns the place of the iterator. If asked to it fails where functions of the dataset have
// a state of their own.
func (it *Iterator) save(ctx *kernel.Context, stateless bool) (tensor.VariantValue, error) {
	if it.at == nil {
		return tensor.VariantValue{}, status.FailedPreconditionf("Save() failed because the iterator has not been initialized. " +
			"Ensure that you have run the initializer operation for this iterator before saving it.")
	}
	if stateless {
		if _, err := writeGraph(&it.made, true); status.CodeOf(err) == status.FailedPrecondition {
			return tensor.VariantValue{}, err
		}
	}
	a := &archive{run: it.request(ctx)}
	it.at.state(a)
	return a.saved(), a.err
}

// restore goes to a place that was saved.
func (it *Iterator) restore(ctx *kernel.Context, functions kernel.Functions, v tensor.VariantValue) error {
	if it.at == nil {
		return status.FailedPreconditionf("Restore() failed because the iterator has not been initialized. " +
			"Ensure that you have run the initializer operation for this iterator before restoring it.")
	}
	r := it.renew(ctx)
	a, err := loadFrom(r, functions, v)
	if err != nil {
		return err
	}
	at, err := it.data.iterate(r)
	if err != nil {
		return err
	}
	at.state(a)
	if a.err == nil {
		it.at = at
	}
	return a.err
}
