package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
)

func init() {
	registerStage("RepeatDataset", "Creates a dataset that repeats its input count times, or forever if count is negative.",
		[]string{"count: int64"}, withSpecAndMetadata(), func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
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

func (d *repeatDataset) iterate(r *run) (iterator, error) {
	it := &repeatIterator{d: d}
	var err error
	// The state includes that of the first round, which may have drawn seeds before its first
	// element.
	if d.n != 0 {
		it.input, err = open(r, d.input)
	}
	return it, err
}

type repeatIterator struct {
	d          *repeatDataset
	i          int64
	input      iterator // nil between rounds
	gotElement bool     // the round has returned an element
	polls      polls
}

func (it *repeatIterator) next(r *run) (element, error) {
	for it.d.n < 0 || it.i < it.d.n {
		if err := it.polls.check(r); err != nil { // rounds may be empty
			return nil, err
		}
		if it.input == nil {
			var err error
			if it.input, err = open(r, it.d.input); err != nil {
				return nil, err
			}
		}
		e, err := it.input.next(r)
		if !errors.Is(err, errEnd) {
			it.gotElement = true
			return e, err
		}
		if !it.gotElement && it.d.n < 0 { // otherwise the loop would not end
			return nil, errEnd
		}
		it.input, it.gotElement = nil, false
		it.i++
	}
	return nil, errEnd
}

func (it *repeatIterator) state(a *archive) {
	a.int(&it.i)
	a.bool(&it.gotElement)
	a.iterator(&it.input, func() (iterator, error) { return open(a.run, it.d.input) })
}
