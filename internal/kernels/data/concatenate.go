package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("ConcatenateDataset", "Creates a dataset that concatenates two datasets.",
		[]string{"another_dataset: variant"}, withSpecAndMetadata(), newConcatenate)
}

type concatenateDataset struct {
	spec
	parts [2]dataset
	known knownCardinality
}

func newConcatenate(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	other, err := datasetOf(ctx.Input(1))
	if err != nil {
		return nil, err
	}
	if err := checkTypes(s.input.elementSpec().types, other.elementSpec().types); err != nil {
		return nil, status.InvalidArgumentf("input dataset and dataset to concatenate have different output_types: %v", err)
	}
	return &concatenateDataset{spec: n.spec(), parts: [2]dataset{s.input, other}}, nil
}

func (d *concatenateDataset) cardinality() int64 { return d.known.get(d.sum) }

// sum returns the sum of the cardinalities of the parts.
func (d *concatenateDataset) sum() int64 {
	a, b := d.parts[0].cardinality(), d.parts[1].cardinality()
	switch {
	case a == infinite || b == infinite:
		return infinite
	case a == unknown || b == unknown:
		return unknown
	}
	return a + b
}

func (d *concatenateDataset) iterate(r *run) (iterator, error) {
	first, err := open(r, d.parts[0])
	return &concatenateIterator{d: d, input: first}, err
}

type concatenateIterator struct {
	d     *concatenateDataset
	i     int64 // index of the current input
	input iterator
}

func (it *concatenateIterator) next(r *run) (element, error) {
	for {
		e, err := it.input.next(r)
		if !errors.Is(err, errEnd) || it.i == 1 {
			return e, err
		}
		second, err := open(r, it.d.parts[1])
		if err != nil {
			return nil, err
		}
		it.i, it.input = 1, second
	}
}

func (it *concatenateIterator) state(a *archive) {
	a.int(&it.i)
	a.iterator(&it.input, func() (iterator, error) { return open(a.run, it.d.parts[min(max(it.i, 0), 1)]) })
}
