package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "DirectedInterleaveDataset", Doc: "Creates a dataset that takes each element from one of several datasets. The elements of the first input are the indices of these datasets.",
		In: []string{"selector_input_dataset: variant", "data_input_datasets: N * variant"}, Attrs: append(withSpec(), "N: int >= 1", "stop_on_empty_dataset: bool = false"),
	}, newDirected)
}

type directedDataset struct {
	spec
	selector    dataset
	inputs      []dataset
	stopOnEmpty bool // stop at the end of the first exhausted input
}

func newDirected(n *node, ctx *kernel.Context) (dataset, error) {
	d := &directedDataset{spec: n.spec(), stopOnEmpty: n.Attrs.Bool("stop_on_empty_dataset")}
	var err error
	if d.selector, err = datasetOf(ctx.Input(0)); err != nil {
		return nil, err
	}
	if s := d.selector.elementSpec(); len(s.types) != 1 || s.types[0] != tensor.Int64 || !s.shapes[0].Compatible(tensor.MakePartial()) {
		return nil, errSelector()
	}
	for i := 1; i < ctx.NumInputs(); i++ {
		in, err := datasetOf(ctx.Input(i))
		if err != nil {
			return nil, err
		}
		if err := checkTypes(d.types, in.elementSpec().types); err != nil {
			return nil, status.InvalidArgumentf("All inputs must have the same output types: %v", err)
		}
		d.inputs = append(d.inputs, in)
	}
	return d, nil
}

func (d *directedDataset) cardinality() int64 {
	total := int64(0)
	for _, in := range d.inputs {
		n := in.cardinality()
		if n < 0 {
			total = n
			break
		}
		total += n
	}
	// An infinite selector may select an infinite input infinitely often.
	if total == infinite && d.selector.cardinality() == infinite {
		return infinite
	}
	return unknown
}

func (d *directedDataset) iterate(r *run) (iterator, error) {
	it := &directedIterator{d: d, inputs: membudget.Make[iterator](len(d.inputs))}
	var err error
	if it.selector, err = open(r, d.selector); err != nil {
		return nil, err
	}
	for i, in := range d.inputs {
		if it.inputs[i], err = open(r, in); err != nil {
			return nil, err
		}
	}
	return it, nil
}

type directedIterator struct {
	d         *directedDataset
	selector  iterator
	inputs    []iterator // nil for exhausted inputs
	exhausted bool
}

func (it *directedIterator) next(r *run) (element, error) {
	for !it.exhausted {
		i, err := it.choose(r)
		if err != nil {
			return nil, err
		}
		if it.inputs[i] == nil {
			continue
		}
		e, err := it.inputs[i].next(r)
		if !errors.Is(err, errEnd) {
			return e, err
		}
		it.inputs[i] = nil
		it.exhausted = it.d.stopOnEmpty
		for _, in := range it.inputs {
			if in != nil {
				i = -1
			}
		}
		it.exhausted = it.exhausted || i >= 0
	}
	return nil, errEnd
}

func errSelector() error {
	return status.InvalidArgumentf("The selector input must be a dataset of scalar int64 elements.")
}

// choose returns the index of the next input.
func (it *directedIterator) choose(r *run) (int64, error) {
	e, err := it.selector.next(r)
	if errors.Is(err, errEnd) {
		it.exhausted = true
	}
	if err != nil {
		return 0, err
	}
	defer e.release()
	if e[0].NumElements() != 1 { // the selector's shape was not known
		return 0, errSelector()
	}
	i := tensor.Value[int64](&e[0])
	if i < 0 || i >= int64(len(it.inputs)) {
		return 0, status.InvalidArgumentf("Selector index out of range: %d >= %d", i, len(it.inputs))
	}
	return i, nil
}

func (it *directedIterator) state(a *archive) {
	a.bool(&it.exhausted)
	it.selector.state(a)
	for i := range it.inputs {
		a.iterator(&it.inputs[i], func() (iterator, error) { return open(a.run, it.d.inputs[i]) })
	}
}
