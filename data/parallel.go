package data

import (
	"context"
	"iter"
	"sync"
)

// Map applies a function to each element, on up to workers goroutines at a time. The order stays.
// The function may be called concurrently, must not modify its argument, and returns elements of
// the given types and shapes; a nil spec is that of d.
func (d *Dataset) Map(workers int, spec []Spec, f func(Element) (Element, error)) *Dataset {
	out := d.with("Map", func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) { mapElements(ctx, d.read, epoch, max(workers, 1), f, yield) }
	})
	if spec != nil {
		out.spec = spec
	}
	return out
}

// result is the outcome of one call of a function.
type result struct {
	e   Element
	err error
}

// mapElements starts a goroutine for each element, at most workers at a time, and yields their
// results in order. It returns after all of them have ended.
func mapElements(
	ctx context.Context, read func(context.Context, int) iter.Seq2[Element, error], epoch, workers int,
	f func(Element) (Element, error), yield func(Element, error) bool,
) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var queue []chan result // of the calls that were started, in order
	next := func() bool {
		r := <-queue[0]
		queue = queue[1:]
		return yield(r.e, r.err) && r.err == nil
	}
	for e, err := range read(ctx, epoch) {
		done := make(chan result, 1)
		queue = append(queue, done)
		if err != nil {
			done <- result{nil, err}
			break
		}
		running.Go(func() {
			e, err := f(e)
			done <- result{e, err}
		})
		if len(queue) == workers && !next() {
			return
		}
	}
	for len(queue) > 0 {
		if !next() {
			return
		}
	}
}

// Prefetch reads up to n elements ahead, on a goroutine of its own, which ends with the loop over
// the elements.
func (d *Dataset) Prefetch(n int) *Dataset {
	return d.ordered(itself, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			var running sync.WaitGroup
			defer running.Wait()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ahead := make(chan result, max(n, 1))
			running.Go(func() {
				defer close(ahead)
				for e, err := range d.read(ctx, epoch) {
					select {
					case ahead <- result{e, err}:
					case <-ctx.Done():
						return
					}
				}
			})
			for r := range ahead {
				if !yield(r.e, r.err) || r.err != nil {
					return
				}
			}
		}
	})
}

// Cache keeps all elements in memory after they have been read for the first time. It comes before
// [Dataset.Shuffle], because it also keeps their order.
func (d *Dataset) Cache() *Dataset {
	var mu sync.Mutex
	var kept []Element
	full := false
	return d.ordered(func(p *Dataset) *Dataset { return p.Cache() }, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			mu.Lock()
			have, ok := kept, full
			mu.Unlock()
			if ok {
				for _, e := range have {
					if !yield(e, nil) {
						return
					}
				}
				return
			}
			var all []Element
			for e, err := range d.read(ctx, epoch) {
				if !yield(e, err) || err != nil {
					return
				}
				all = append(all, e)
			}
			mu.Lock()
			kept, full = all, true
			mu.Unlock()
		}
	})
}

func itself(d *Dataset) *Dataset { return d }
