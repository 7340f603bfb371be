package data

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// open returns an iterator at the first element of a dataset. Stages and resources open datasets
// with it.
//
// If steps have accounts of memory, each element is charged as it leaves a stage. So what buffers,
// caches and lists of elements hold is paid for by the step that made it grow, or by its session
// for work ahead of requests. A function charges its results itself. An element that passes through
// several stages is charged once.
func open(r *run, d dataset) (iterator, error) {
	// the iterators of a chain of Zip(d, d) are exponentially many
	if err := r.cancelled(); err != nil {
		return nil, err
	}
	if !membudget.Take(iteratorMemory) {
		return nil, status.ResourceExhaustedf("There is not enough memory for further iterators of datasets (--memory-limit).")
	}
	it, err := d.iterate(r)
	if err != nil || resource.Account(r.ctx) == nil {
		return it, err
	}
	return &chargingIterator{it}, nil
}

// iteratorMemory is about the memory of an iterator of a stage, in bytes.
const iteratorMemory = 256

// chargingIterator charges the elements of an iterator to the steps that request them.
type chargingIterator struct{ iterator }

func (it *chargingIterator) next(r *run) (element, error) {
	e, err := it.iterator.next(r)
	if err != nil {
		return nil, err
	}
	return r.charge(e)
}

// charge charges the tensors of an element to the step of the request. If it cannot pay, it
// releases the element.
func (r *run) charge(e element) (element, error) {
	account := resource.Account(r.ctx)
	if account == nil {
		return e, nil
	}
	for i := range e {
		if err := resource.Charge(account, &e[i]); err != nil {
			e.release()
			return nil, err
		}
	}
	return e, nil
}
