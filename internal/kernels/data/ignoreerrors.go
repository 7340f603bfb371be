package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
)

func init() {
	registerStage("IgnoreErrorsDataset", "Creates a dataset of the elements of its input, ignoring those that fail with an error.", nil,
		append(withSpec(), "log_warning: bool = false"),
		func(_ *node, _ *kernel.Context, s stage) (dataset, error) { return &ignoreErrorsDataset{s}, nil })
}

type ignoreErrorsDataset struct{ stage }

func (d *ignoreErrorsDataset) cardinality() int64 { return unknown }

func (d *ignoreErrorsDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &ignoreErrorsIterator{src}, err
}

type ignoreErrorsIterator struct{ source }

func (it *ignoreErrorsIterator) next(r *run) (element, error) {
	for {
		e, err := it.pull(r)
		if err == nil || errors.Is(err, errEnd) {
			return e, err
		}
		if ended := r.cancelled(); ended != nil {
			return nil, ended
		}
	}
}
