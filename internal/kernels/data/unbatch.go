package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("UnbatchDataset", "Creates a dataset that splits the elements of its input into their rows.", nil, withSpecAndMetadata(),
		func(_ *node, _ *kernel.Context, s stage) (dataset, error) { return &unbatchDataset{s}, nil })
}

type unbatchDataset struct{ stage }

func (d *unbatchDataset) cardinality() int64 {
	n := d.input.cardinality()
	switch rows := d.input.elementSpec().shapes[0].Dim(0); {
	case n == infinite || n == unknown:
		return n
	case rows >= 0:
		return n * rows
	}
	return unknown
}

// at returns element i if the number of rows of each input element is known.
func (d *unbatchDataset) at(r *run, i int64) (element, error) {
	n := int64(unknown)
	for _, shape := range d.input.elementSpec().shapes {
		if n = shape.Dim(0); n > 0 {
			break
		}
	}
	if n <= 0 {
		return nil, status.FailedPreconditionf("Random access for the `unbatch` dataset requires a known batch size. Got %d.", n)
	}
	e, err := atIndex(r, d.input, i/n)
	if err != nil {
		return nil, err
	}
	defer e.release()
	if err := checkRows(e); err != nil {
		return nil, err
	}
	if rows := int64(e[0].Dim(0)); rows != n {
		return nil, status.InvalidArgumentf("Element %d of the `unbatch` dataset has %d rows, must have %d", i/n, rows, n)
	}
	return rowOf(e, int(i%n))
}

func (d *unbatchDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &unbatchIterator{source: src}, err
}

type unbatchIterator struct {
	source
	rows element // nil between elements
	i    int64
}

func (it *unbatchIterator) next(r *run) (element, error) {
	for it.rows == nil || it.i >= int64(it.rows[0].Dim(0)) {
		it.rows.release()
		it.rows, it.i = nil, 0
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		if err := checkRows(e); err != nil {
			e.release()
			return nil, err
		}
		it.rows = e
	}
	it.i++
	return rowOf(it.rows, int(it.i-1))
}

// checkRows returns an error if the components cannot be split into equal numbers of rows.
func checkRows(e element) error {
	for i := range e {
		if e[i].Rank() == 0 {
			return status.InvalidArgumentf("Input element must have a non-scalar value in each component.")
		}
		if e[i].Dim(0) != e[0].Dim(0) {
			return status.InvalidArgumentf("Input element must have the same batch size in each component. Component 0 had size %d but "+
				"component %d had size, %d.", e[0].Dim(0), i, e[i].Dim(0))
		}
	}
	return nil
}

func (it *unbatchIterator) state(a *archive) {
	a.int(&it.i)
	a.element(&it.rows)
	if a.loading && len(it.rows) == 0 {
		it.rows = nil
	}
	if a.loading && (it.i < 0 || checkRows(it.rows) != nil) {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
	}
	it.source.state(a)
}
