package data

import "github.com/weft-ml/weft/kernel"

func init() {
	attrs := withSpecAndMetadata("predicate: func", "Targuments: list(type) >= 0")
	in := []string{"other_arguments: Targuments"}
	registerStage("FilterDataset", "Creates a dataset of the elements of its input that satisfy a predicate.", in, attrs, newFilter)
	registerStage("ParallelFilterDataset", "Creates a dataset of the elements of its input that satisfy a predicate.",
		append(in[:1:1], "num_parallel_calls: int64"),
		withSpecAndMetadata("predicate: func", "deterministic: string = 'default'", "Targuments: list(type) >= 0"), newParallelFilter)
	registerStage("TakeWhileDataset", "Creates a dataset that stops at the first element that does not satisfy a predicate.", in, attrs,
		func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			f, err := n.function(ctx, "predicate", "other_arguments")
			return &takeWhileDataset{s, f}, err
		})
}

type filterDataset struct {
	stage
	f    *captured
	node string // name of the node, for statistics
}

func newFilter(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "predicate", "other_arguments")
	return &filterDataset{s, f, n.Node}, err
}

func (d *filterDataset) cardinality() int64 { return unknown }

func (d *filterDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &filterIterator{source: src, d: d}, err
}

type filterIterator struct {
	source
	d                 *filterDataset
	filtered, dropped int64 // numbers of elements, counted only for statistics
}

func (it *filterIterator) next(r *run) (element, error) {
	for {
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		holds, err := it.d.f.evalPredicate(r, e)
		if err == nil {
			it.record(r.stats, holds)
		}
		if err == nil && holds {
			return e, nil
		}
		e.release()
		if err != nil {
			return nil, err
		}
	}
}

// record counts an element.
func (it *filterIterator) record(s *recorder, holds bool) {
	switch {
	case s == nil:
	case holds:
		it.filtered++
		s.set(it.d.node+statsDelimiter+"filtered_elements", float64(it.filtered))
	default:
		it.dropped++
		s.set(it.d.node+statsDelimiter+"dropped_elements", float64(it.dropped))
	}
}

// parallelFilterDataset evaluates the predicate for several elements in parallel.
type parallelFilterDataset struct {
	filterDataset
	calls int // maximum number of parallel calls
	order determinism
}

func newParallelFilter(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	f, err := n.function(ctx, "predicate", "other_arguments")
	if err != nil {
		return nil, err
	}
	order, err := n.determinism()
	if err != nil {
		return nil, err
	}
	calls, err := parallelism[int64](n, ctx)
	return &parallelFilterDataset{filterDataset{s, f, n.Node}, calls, order}, err
}

func (d *parallelFilterDataset) iterate(r *run) (iterator, error) {
	return d.parallelMap(r, d.apply, d.calls, d.order)
}

// apply returns the element if it satisfies the predicate, and errSkipped otherwise.
func (d *parallelFilterDataset) apply(r *run, e element) (element, error) {
	holds, err := d.f.evalPredicate(r, e)
	if err == nil && holds {
		return e, nil
	}
	e.release()
	if err == nil {
		err = errSkipped
	}
	return nil, err
}

type takeWhileDataset struct {
	stage
	f *captured
}

func (d *takeWhileDataset) cardinality() int64 { return unknown }

func (d *takeWhileDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &takeWhileIterator{source: src, d: d}, err
}

type takeWhileIterator struct {
	source
	d         *takeWhileDataset
	exhausted bool
}

func (it *takeWhileIterator) next(r *run) (element, error) {
	if it.exhausted {
		return nil, errEnd
	}
	e, err := it.input.next(r)
	if err != nil {
		return nil, err
	}
	holds, err := it.d.f.evalPredicate(r, e)
	if err == nil && holds {
		return e, nil
	}
	e.release()
	if err == nil {
		it.exhausted, err = true, errEnd
	}
	return nil, err
}

func (it *takeWhileIterator) state(a *archive) {
	a.bool(&it.exhausted)
	it.source.state(a)
}
