package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
)

func init() {
	registerStage("RepeatDataset", "Makes a dataset of the elements of another, count times, or for ever if count is negative.",
		[]string{"count: int64"}, described(), func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			count, err := scalar[int64](n, ctx, "count")
			return &repeatDataset{s, count}, err
		})
}

type repeatDataset struct {
	stage
	n int64
}

func (d *repeatDataset) cardinality() int64 {
	n := d.input.cardinality()
	switch {
	case d.n < 0 && n == 0:
		return 0
	case d.n < 0:
		return infinite
	case d.n == 0:
		return 0
	case n < 0:
		return n
	}
	return d.n * n
}

func (d *repeatDataset) iterate(*run) (iterator, error) { return &repeatIterator{d: d}, nil }

type repeatIterator struct {
	d     *repeatDataset
	i     int64
	input iterator // nil before the first element of a round
}

func (it *repeatIterator) next(r *run) (element, error) {
	for it.d.n < 0 || it.i < it.d.n {
		first := it.input == nil
		if first {
			var err error
			if it.input, err = it.d.input.iterate(r); err != nil {
				return nil, err
			}
		}
		e, err := it.input.next(r)
		if !errors.Is(err, errEnd) {
			return e, err
		}
		it.input = nil
		if first && it.d.n < 0 { // otherwise this would never end
			return nil, errEnd
		}
		it.i++
	}
	return nil, errEnd
}

func (it *repeatIterator) state(a *archive) {
	a.int(&it.i)
	a.iterator(&it.input, func() (iterator, error) { return it.d.input.iterate(a.run) })
}
