package data

import "github.com/weft-ml/weft/kernel"

func init() {
	count := []string{"count: int64"}
	registerStage("TakeDataset", "Creates a dataset of the first count elements of its input, or of all if count is negative.", count, withSpecAndMetadata(),
		func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			count, err := scalar[int64](n, ctx, "count")
			return &takeDataset{s, count}, err
		})
	registerStage("SkipDataset", "Creates a dataset that skips the first count elements of its input, or all if count is negative.", count, withSpecAndMetadata(),
		func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			count, err := scalar[int64](n, ctx, "count")
			return &skipDataset{s, count}, err
		})
}

type takeDataset struct {
	stage
	n int64
}

func (d *takeDataset) cardinality() int64 {
	n := d.input.cardinality()
	switch {
	case d.n == 0:
		return 0
	case n == unknown || d.n < 0:
		return n
	case n == infinite:
		return d.n
	}
	return min(n, d.n)
}

func (d *takeDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &takeIterator{source: src, d: d}, err
}

type takeIterator struct {
	source
	d *takeDataset
	i int64
}

func (it *takeIterator) next(r *run) (element, error) {
	if it.d.n >= 0 && it.i >= it.d.n {
		return nil, errEnd
	}
	e, err := it.input.next(r)
	if err == nil {
		it.i++
	}
	return e, err
}

func (it *takeIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}

type skipDataset struct {
	stage
	n int64
}

func (d *skipDataset) cardinality() int64 {
	n := d.input.cardinality()
	switch {
	case d.n < 0:
		return 0
	case n < 0:
		return n
	}
	return max(0, n-d.n)
}

func (d *skipDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &skipIterator{source: src, d: d}, err
}

type skipIterator struct {
	source
	d *skipDataset
	i int64
}

func (it *skipIterator) next(r *run) (element, error) {
	if it.d.n < 0 {
		return nil, errEnd
	}
	for it.i < it.d.n {
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		e.release()
		it.i++
	}
	return it.input.next(r)
}

func (it *skipIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}
