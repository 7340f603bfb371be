package data

import (
	"errors"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	in := func(more ...string) []string { return append([]string{"other_arguments: Targuments"}, more...) }
	plain := withSpecAndMetadata("f: func", "Targuments: list(type) >= 0")
	registerStage("FlatMapDataset", "Creates a dataset that applies a function that returns datasets to the elements of its input and concatenates the results.",
		in(), plain, newFlatMap)
	doc := "Creates a dataset that applies a function that returns datasets to the elements of its input and interleaves the results: block_length elements from each of cycle_length datasets in turn."
	ahead := withSpecAndMetadata("f: func", "deterministic: string = 'default'", "Targuments: list(type) >= 0")
	sloppy := append(withSpec("f: func", "Targuments: list(type) >= 0"), "sloppy: bool = false", metadata)
	registerStage("InterleaveDataset", doc, in("cycle_length: int64", "block_length: int64"), plain, newInterleave)
	registerStage("ParallelInterleaveDatasetV2", doc, in("cycle_length: int64", "block_length: int64", "num_parallel_calls: int64"), sloppy, newParallelInterleave)
	registerStage("ParallelInterleaveDatasetV3", doc, in("cycle_length: int64", "block_length: int64", "num_parallel_calls: int64"), ahead, newParallelInterleave)
	registerStage("ParallelInterleaveDatasetV4", doc, in("cycle_length: int64", "block_length: int64", "buffer_output_elements: int64",
		"prefetch_input_elements: int64", "num_parallel_calls: int64"), ahead, newParallelInterleave)
	registerStage("ParallelInterleaveDataset", doc, in("cycle_length: int64", "block_length: int64", "sloppy: bool", "buffer_output_elements: int64",
		"prefetch_input_elements: int64"), plain, newParallelInterleave)
	registerStage("SloppyInterleaveDataset", doc+" The order is not fixed. From TensorFlow 1.4.", in("cycle_length: int64", "block_length: int64"),
		withSpec("f: func", "Targuments: list(type) >= 0"), newParallelInterleave)
	registerStage("LegacyParallelInterleaveDatasetV2", doc, in("cycle_length: int64", "block_length: int64", "buffer_output_elements: int64",
		"prefetch_input_elements: int64"), ahead, newParallelInterleave)
}

// interleaveDataset interleaves the elements of several datasets.
type interleaveDataset struct {
	stage
	f            *captured
	cycle, block int64
	parallel     *parallelInterleave // nil if the datasets are read one at a time
	// number of elements, if it has been counted; nil otherwise
	counted atomic.Pointer[int64]
}

func newFlatMap(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	return &interleaveDataset{stage: s, f: f, cycle: 1, block: 1}, err
}

// defaultCycle is the cycle length if the program does not set it.
const defaultCycle = 10

func newInterleave(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	return n.interleave(ctx, s)
}

func (n *node) interleave(ctx *kernel.Context, s stage) (*interleaveDataset, error) {
	f, err := n.function(ctx, "f", "other_arguments")
	if err != nil {
		return nil, err
	}
	v, err := n.scalars(ctx, "cycle_length", "block_length")
	if err != nil {
		return nil, err
	}
	if v[0] == -1 && n.Op.Name != "InterleaveDataset" {
		v[0] = defaultCycle
	}
	if v[0] <= 0 {
		return nil, status.InvalidArgumentf("cycle_length must be greater than zero.")
	}
	if v[1] <= 0 {
		return nil, status.InvalidArgumentf("block_length must be greater than zero.")
	}
	return &interleaveDataset{stage: s, f: f, cycle: v[0], block: v[1]}, nil
}

func (d *interleaveDataset) cardinality() int64 {
	if n := d.counted.Load(); n != nil {
		return *n
	}
	if d.parallel != nil {
		return d.infiniteOrUnknown()
	}
	return unknown
}

func (d *interleaveDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	if p := d.parallel; p != nil {
		ordered := !p.order.unordered(r)
		if !ordered || d.cycle <= maxCalls {
			return &aheadInterleave{source: src, d: d, ordered: ordered, changed: newSignal()}, err
		}
	}
	return &interleaveIterator{source: src, d: d}, err
}

// lane is one of the interleaved datasets.
type lane struct {
	from element  // input of the function that created its dataset
	at   iterator // nil if the lane is free
}

type interleaveIterator struct {
	source
	d         *interleaveDataset
	lanes     []lane
	current   int64 // index of the current lane
	taken     int64 // number of elements taken from the current block
	open      int64 // number of lanes in use
	exhausted bool  // the input is exhausted
}

func (it *interleaveIterator) next(r *run) (element, error) {
	for !it.exhausted || it.open > 0 {
		l, err := it.lane(r)
		if err != nil {
			return nil, err
		}
		if l.at == nil {
			it.pass()
			continue
		}
		e, err := l.at.next(r)
		if errors.Is(err, errEnd) {
			l.from.release()
			*l = lane{}
			it.open--
			it.pass()
			continue
		}
		if it.taken++; it.taken == it.d.block {
			it.pass()
		}
		return e, err
	}
	return nil, errEnd
}

// pass advances to the next lane.
func (it *interleaveIterator) pass() {
	it.taken = 0
	it.current++
	if it.current >= it.d.cycle || it.exhausted && it.current >= int64(len(it.lanes)) {
		it.current = 0
	}
}

// laneMemory is about the memory of an open lane, in bytes: its dataset and the iterator.
const laneMemory = 1 << 10

// lane returns the current lane. If it is free, it opens the dataset of the next input element.
func (it *interleaveIterator) lane(r *run) (*lane, error) {
	if int64(len(it.lanes)) <= it.current {
		membudget.MustTake(laneMemory)
		it.lanes = membudget.Append(it.lanes, lane{})
	}
	l := &it.lanes[it.current]
	if l.at != nil || it.exhausted {
		return l, nil
	}
	e, err := it.input.next(r)
	if errors.Is(err, errEnd) {
		it.exhausted = true
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := it.d.f.iterate(r, e.retain())
	if err != nil {
		e.release()
		return nil, err
	}
	l.from, l.at = e, at
	it.open++
	return l, nil
}

func (it *interleaveIterator) state(a *archive) {
	it.source.state(a)
	a.int(&it.current)
	a.int(&it.taken)
	a.int(&it.open)
	a.bool(&it.exhausted)
	n := a.count(len(it.lanes))
	if a.loading {
		it.lanes = membudget.Make[lane](n)
	}
	for i := range it.lanes {
		l := &it.lanes[i]
		a.element(&l.from)
		a.iterator(&l.at, func() (iterator, error) { return it.d.f.iterate(a.run, l.from.retain()) })
	}
	if a.loading && (it.current < 0 || it.current > int64(n) || it.current >= it.d.cycle) {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
	}
}
