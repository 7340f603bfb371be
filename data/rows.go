package data

import (
	"context"
	"iter"
	"slices"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// indexed describes a data set whose elements are rows of tensors in memory.
type indexed struct {
	columns []tensor.Tensor
	count   int // rows
	// order does with the positions of the rows what d does with the rows.
	order func(p *Dataset) *Dataset
}

// Rows returns the tensors in memory whose rows are the elements, and a function that yields the
// positions of the rows of each batch of an epoch. With them another process can read the data set:
// the batches are those of [Dataset.Batches].
//
// The error has the code Unimplemented if the elements are not rows of such tensors: they come from
// a file, [New], or a function of the program ([Dataset.Map]).
func (d *Dataset) Rows() (columns []tensor.Tensor, batches func(ctx context.Context, epoch int) iter.Seq2[[]int64, error], err error) {
	switch {
	case d.indexed == nil:
		return nil, nil, status.Unimplementedf("data: the data set cannot be read on a worker, because its elements come from %s; "+
			"rows of slices can (FromSlices, Table.Dataset, IDX), in the order of Shuffle, Split, Shard, Take, Skip and Batch", d.why)
	case !d.batched:
		return nil, nil, errNotBatched()
	}
	all := make([]int64, d.indexed.count)
	for i := range all {
		all[i] = int64(i)
	}
	positions, err := FromSlices(all)
	if err != nil {
		return nil, nil, err
	}
	positions = d.indexed.order(positions)
	return d.indexed.columns, func(ctx context.Context, epoch int) iter.Seq2[[]int64, error] {
		return func(yield func([]int64, error) bool) {
			for e, err := range positions.Elements(ctx, epoch) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(slices.Clone(tensor.Values[int64](&e[0])), nil) {
					return
				}
			}
		}
	}, nil
}
