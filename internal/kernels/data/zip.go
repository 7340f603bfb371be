package data

import (
	"errors"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	register(opdef.Def{
		Name: "ZipDataset", Doc: "Creates a dataset that zips several datasets: each element has the components of one element of each.",
		In:    []string{"input_datasets: N * variant"},
		Attrs: append(withSpec(), "N: int >= 1", metadata),
	}, newZip)
}

type zipDataset struct {
	spec
	inputs []dataset
	known  knownCardinality
}

func newZip(n *node, ctx *kernel.Context) (dataset, error) {
	inputs, err := datasetsOf(ctx, 0, ctx.NumInputs())
	return &zipDataset{spec: n.spec(), inputs: inputs}, err
}

// datasetsOf returns the datasets in inputs lo to hi.
func datasetsOf(ctx *kernel.Context, lo, hi int) ([]dataset, error) {
	all := membudget.Make[dataset](hi - lo)
	for i := range all {
		var err error
		if all[i], err = datasetOf(ctx.Input(lo + i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (d *zipDataset) cardinality() int64 { return d.known.get(d.least) }

// least returns the least cardinality of the inputs.
func (d *zipDataset) least() int64 {
	least := int64(infinite)
	for _, input := range d.inputs {
		switch n := input.cardinality(); {
		case n == unknown:
			return unknown
		case n != infinite && (least == infinite || n < least):
			least = n
		}
	}
	return least
}

func (d *zipDataset) iterate(r *run) (iterator, error) {
	it := &zipIterator{inputs: membudget.Make[iterator](len(d.inputs))}
	for i, input := range d.inputs {
		var err error
		if it.inputs[i], err = open(r, input); err != nil {
			return nil, err
		}
	}
	return it, nil
}

type zipIterator struct {
	inputs    []iterator
	exhausted bool
}

func (it *zipIterator) next(r *run) (element, error) {
	if it.exhausted {
		return nil, errEnd
	}
	parts := membudget.MakeCap[element](len(it.inputs))
	var failed error
	// All inputs are read, so that they stay aligned after an error.
	for i, input := range it.inputs {
		e, err := input.next(r)
		if errors.Is(err, errEnd) {
			failed, it.exhausted = err, true
			endAll(r, it.inputs[i+1:])
			break
		}
		if err != nil && failed == nil {
			failed = err
		}
		parts = append(parts, e)
	}
	if failed != nil {
		for _, e := range parts {
			e.release()
		}
		return nil, failed
	}
	return slices.Concat(parts...), nil
}

// endAll reads once more from the remaining inputs, so that those of equal size reach their end
// too.
func endAll(r *run, inputs []iterator) {
	for _, input := range inputs {
		if e, err := input.next(r); err == nil {
			e.release()
		}
	}
}

func (it *zipIterator) state(a *archive) {
	a.bool(&it.exhausted)
	for _, input := range it.inputs {
		input.state(a)
	}
}
