package data

import (
	"context"
	"iter"
	"sync"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Map applies a function to each element, on up to workers goroutines at a time. The order stays.
// The function may be called concurrently, must not modify its argument, and returns elements of
// the given types and shapes; a nil spec is that of d. Only the program can call it, not a worker:
// see [Dataset.MapOps].
func (d *Dataset) Map(workers int, spec []Spec, f func(Element) (Element, error)) *Dataset {
	return d.mapWith("Map", workers, spec, f, nil)
}

// mapWith is Map for the method of the given name. A graph calls g, if it is not nil, for f.
func (d *Dataset) mapWith(
	name string, workers int, spec []Spec, f func(Element) (Element, error), g func(*op.Scope, []op.Output) []op.Output,
) *Dataset {
	var add stage
	if g != nil {
		add = func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
			return p.apply(in, d.spec, workers, types, shapes, g)
		}
	}
	out := d.with(name, func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) { mapElements(ctx, d.read, epoch, max(workers, 1), f, yield) }
	}, add)
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
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		return op.PrefetchDataset(p.s, in, p.number(max(n, 1)), types, shapes)
	})
}

func itself(d *Dataset) *Dataset { return d }
