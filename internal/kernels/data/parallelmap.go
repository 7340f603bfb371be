package data

import (
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	doc := "Creates a dataset that applies a function to several elements of its input in parallel."
	registerStage("ParallelMapDataset", doc, []string{"other_arguments: Targuments", "num_parallel_calls: int32"},
		append(withSpec("f: func", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true", "sloppy: bool = false",
			"preserve_cardinality: bool = false", metadata), newParallelMap[int32])
	registerStage("ParallelMapDatasetV2", doc, []string{"other_arguments: Targuments", "num_parallel_calls: int64"},
		append(withSpec("f: func", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true",
			"deterministic: string = 'default'", "preserve_cardinality: bool = false", "use_unbounded_threadpool: bool = false", metadata),
		newParallelMap[int64])
}

// autotune is the value that lets the runtime choose a number.
const autotune = -1

// parallelMapDataset applies a function to several elements in parallel.
type parallelMapDataset struct {
	mapDataset
	calls int // maximum number of parallel calls
	order determinism
}

func newParallelMap[T int32 | int64](n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	if err != nil {
		return nil, err
	}
	order, err := n.determinism()
	if err != nil {
		return nil, err
	}
	calls, err := parallelism[T](n, ctx)
	return &parallelMapDataset{mapDataset{s, f, n.Attrs.Bool("preserve_cardinality")}, calls, order}, err
}

// parallelism returns the maximum number of parallel calls.
func parallelism[T int32 | int64](n *node, ctx *kernel.Context) (int, error) {
	i, _, err := n.InputRange("num_parallel_calls")
	if err != nil {
		return 0, err
	}
	in := ctx.Input(i)
	if in.Rank() != 0 {
		return 0, status.InvalidArgumentf("num_parallel_calls must be a scalar")
	}
	calls := int64(tensor.Values[T](in)[0])
	if calls != autotune && calls <= 0 {
		return 0, status.InvalidArgumentf("num_parallel_calls must be greater than zero.")
	}
	if calls == autotune {
		calls = int64(runtime.GOMAXPROCS(0))
	}
	return int(min(calls, maxCalls)), nil
}

// maxCalls limits the goroutines of one iterator.
const maxCalls = 1 << 12

func (d *parallelMapDataset) iterate(r *run) (iterator, error) {
	return d.parallelMap(r, d.apply, d.calls, d.order)
}

// parallelMap returns an iterator over the results of apply, which takes over an element. Results
// with errSkipped are omitted.
func (s *stage) parallelMap(r *run, apply func(*run, element) (element, error), calls int, order determinism) (iterator, error) {
	src, err := s.begin(r)
	return &parallelMapIterator{
		source: src, apply: apply, calls: calls, unordered: order.unordered(r), changed: newSignal(),
	}, err
}

// parallelMapIterator reads its input on a goroutine. The goroutine ends when the number of pending
// results reaches calls, at the end or an error of the input, and when the iterator's lifetime
// ends. Each call of apply has a goroutine of its own.
type parallelMapIterator struct {
	source
	apply     func(*run, element) (element, error)
	calls     int    // maximum number of pending results
	unordered bool   // results are returned in the order of their completion
	changed   signal // signalled after each change of the fields below, and when a result is ready

	mu        sync.Mutex
	results   []*result // in the order of the input; guarded by mu
	reading   bool      // the reader goroutine is running; guarded by mu
	exhausted bool      // the input is exhausted; guarded by mu
}

func (it *parallelMapIterator) next(r *run) (element, error) {
	for {
		it.mu.Lock()
		p := it.take()
		end := p == nil && it.exhausted && len(it.results) == 0
		var err error
		if !it.exhausted && !it.reading && len(it.results) < it.calls {
			if err = takeGoroutines(1); err == nil {
				it.reading = true
				go it.read(r.ahead())
			}
		}
		waits := len(it.results) > 0
		it.mu.Unlock()
		switch {
		case p != nil:
			return p.value, p.err
		case end:
			return nil, errEnd
		case err != nil && !waits: // no call will end
			return nil, err
		}
		if err := it.changed.wait(r); err != nil {
			return nil, err
		}
	}
}

// take removes and returns the next result, or nil if it is not ready. The caller holds mu. The
// end, which the function may also report, follows all results before it, even if the order is
// free.
func (it *parallelMapIterator) take() *result {
	for i := 0; i < len(it.results); i++ {
		p := it.results[i]
		switch {
		case !p.isReady():
		case errors.Is(p.err, errSkipped):
			it.results = slices.Delete(it.results, i, i+1)
			i--
			continue
		case i == 0 || !errors.Is(p.err, errEnd):
			it.results = slices.Delete(it.results, i, i+1)
			return p
		}
		if !it.unordered {
			return nil
		}
	}
	return nil
}

// read is the reader goroutine: it starts a call for each element of the input.
func (it *parallelMapIterator) read(r *run) {
	for more := true; more; {
		e, err := nextGuarded(it.input, r)
		it.mu.Lock()
		switch {
		case errors.Is(err, errEnd):
			it.exhausted = true
		case err != nil:
			//sizedmake:ok at most one for each call
			it.results = append(it.results, ready(nil, err))
		default:
			p := newResult()
			//sizedmake:ok at most one for each call
			it.results = append(it.results, p)
			if err := takeGoroutines(1); err != nil {
				e.release()
				p.set(nil, err)
			} else {
				go it.call(r.ahead(), e, p)
			}
		}
		more = err == nil && len(it.results) < it.calls && r.lifetime.Err() == nil
		it.reading = more
		it.mu.Unlock()
		it.changed.notify()
	}
}

func (it *parallelMapIterator) call(r *run, e element, p *result) {
	var out element
	err := guarded(func() (err error) {
		out, err = it.apply(r, e)
		return err
	})
	p.set(out, err)
	it.changed.notify()
}

// state waits until the reader goroutine has ended and all results are ready.
func (it *parallelMapIterator) state(a *archive) {
	it.mu.Lock()
	for it.reading {
		it.mu.Unlock()
		if err := it.changed.wait(a.run); err != nil {
			a.fail(err)
			return
		}
		it.mu.Lock()
	}
	defer it.mu.Unlock()
	a.bool(&it.exhausted)
	archiveResults(a, &it.results)
	it.source.state(a)
}
