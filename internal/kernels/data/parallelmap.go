package data

import (
	"errors"
	"runtime"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	doc := "Makes a dataset of what a function makes of the elements of another, calling it for several at once."
	registerStage("ParallelMapDataset", doc, []string{"other_arguments: Targuments", "num_parallel_calls: int32"},
		append(typed("f: func", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true", "sloppy: bool = false",
			"preserve_cardinality: bool = false", metadata), newParallelMap[int32])
	registerStage("ParallelMapDatasetV2", doc, []string{"other_arguments: Targuments", "num_parallel_calls: int64"},
		append(typed("f: func", "Targuments: list(type) >= 0"), "use_inter_op_parallelism: bool = true",
			"deterministic: string = 'default'", "preserve_cardinality: bool = false", "use_unbounded_threadpool: bool = false", metadata),
		newParallelMap[int64])
}

// autotune asks for a number that the runtime chooses.
const autotune = -1

// parallelMapDataset gives its elements in order, whatever call ends first.
type parallelMapDataset struct {
	mapDataset
	calls int // at once
}

func newParallelMap[T int32 | int64](n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	if err != nil {
		return nil, err
	}
	calls, err := parallelism[T](n, ctx)
	return &parallelMapDataset{mapDataset{s, f, n.Attrs.Bool("preserve_cardinality")}, calls}, err
}

// parallelism returns how many calls of a function may be under way at once.
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
	return int(min(calls, mostCalls)), nil
}

// mostCalls bounds the goroutines of one iterator.
const mostCalls = 1 << 12

func (d *parallelMapDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &parallelMapIterator{source: src, apply: d.apply, calls: d.calls}, err
}

type parallelMapIterator struct {
	source
	apply func(*run, element) (element, error)
	calls int // at once
	over  bool
	queue queue // of calls under way
}

func (it *parallelMapIterator) next(r *run) (element, error) {
	for !it.over && it.queue.len() < it.calls {
		it.start(r)
	}
	if it.queue.len() == 0 {
		return nil, errEnd
	}
	return it.queue.pop(r)
}

// start calls the function for one more element.
func (it *parallelMapIterator) start(r *run) {
	e, err := it.input.next(r)
	if errors.Is(err, errEnd) {
		it.over = true
		return
	}
	if err != nil {
		it.queue.push(ready(nil, err))
		return
	}
	p, ahead := newResult(), r.ahead()
	it.queue.push(p)
	go func() {
		var out element
		err := guarded(func() (err error) {
			out, err = it.apply(ahead, e)
			return err
		})
		p.set(out, err)
	}()
}

func (it *parallelMapIterator) state(a *archive) {
	a.bool(&it.over)
	it.queue.state(a)
	it.source.state(a)
}
