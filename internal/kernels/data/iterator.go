package data

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Iterator is the iterator resource. It serves one request at a time.
type Iterator struct {
	spec

	sem      chan struct{} // holds a token while no request is running; guards the fields below
	data     dataset       // nil before the first MakeIterator
	variant  tensor.Tensor // the variant of data
	at       iterator
	lifetime context.Context // lifetime of at
	cleanups *cleanups       // cleanup functions of at

	unordered bool      // options of data have deterministic = false
	stats     *recorder // of the stages; nil if there is none

	mu     sync.Mutex
	closed bool               // guarded by mu
	stop   context.CancelFunc // cancels lifetime; guarded by mu
}

func newIterator(s spec) *Iterator {
	it := &Iterator{spec: s, sem: make(chan struct{}, 1), cleanups: &cleanups{}}
	it.sem <- struct{}{}
	return it
}

// TypeName returns TensorFlow's name of the resource.
func (*Iterator) TypeName() string { return "N10tensorflow4data16IteratorResourceE" }

// Close stops the goroutines that work ahead for the iterator.
func (it *Iterator) Close() {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.closed = true
	if it.stop != nil {
		it.stop()
	}
	it.cleanups.run()
}

// renew ends the current lifetime of the iterator, starts a new one and returns the first request
// in it.
func (it *Iterator) renew(ctx *kernel.Context) *run {
	lifetime, stop := context.WithCancel(context.Background())
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.stop != nil {
		it.stop()
	}
	it.cleanups.run()
	if it.stop = stop; it.closed {
		stop()
	}
	it.lifetime = lifetime
	return it.request(ctx)
}

// request returns a request of a node within the current lifetime.
func (it *Iterator) request(ctx *kernel.Context) *run {
	r := newRun(ctx, it.lifetime, it.cleanups)
	r.unordered, r.stats = it.unordered, it.stats
	return r
}

// use waits for the running request, calls f on a new goroutine and passes its error to done.
func (it *Iterator) use(ctx *kernel.Context, done func(error), f func() error) {
	go func() {
		select {
		case <-it.sem:
		case <-ctx.Context().Done():
			done(status.FromContext(ctx.Context(), "waiting for an iterator"))
			return
		}
		err := guard.Call("a dataset", f)
		it.sem <- struct{}{}
		done(err)
	}()
}

// reset moves the iterator to the start of a dataset.
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
	if requestsParallelMaps(options) {
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
	at, err := open(r, d)
	if err != nil {
		return err
	}
	it.data, it.variant, it.at = d, t.Retain(), at
	return nil
}

// next returns the next element. Its types and shapes must match want, those of the node.
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

// save returns a variant with the state of the iterator. If stateless is set, it fails if the
// dataset has stateful functions.
func (it *Iterator) save(ctx *kernel.Context, stateless bool) (tensor.VariantValue, error) {
	if it.at == nil {
		return tensor.VariantValue{}, status.FailedPreconditionf("Save() failed because the iterator has not been initialized. " +
			"Ensure that you have run the initializer operation for this iterator before saving it.")
	}
	if stateless {
		if _, err := writeGraph(&it.variant, true); status.CodeOf(err) == status.FailedPrecondition {
			return tensor.VariantValue{}, err
		}
	}
	a := &archive{run: it.request(ctx)}
	it.at.state(a)
	return a.saved(), a.err
}

// restore loads a state that save returned.
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
	at, err := open(r, it.data)
	if err != nil {
		return err
	}
	at.state(a)
	if a.err == nil {
		it.at = at
	}
	return a.err
}

// guarded calls f and converts a panic to an error; nothing else recovers panics on its goroutine.
func guarded(f func() error) error { return guard.Call("a dataset", f) }
