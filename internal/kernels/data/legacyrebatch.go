package data

import (
	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("RebatchDataset", "Creates a dataset that splits each batch into num_replicas batches of nearly equal size.",
		[]string{"num_replicas: int64"}, append(withSpec(), "use_fallback: bool = true"),
		func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			parts, err := scalar[int64](n, ctx, "num_replicas")
			if err == nil && parts <= 0 {
				err = status.InvalidArgumentf("num_replicas must be greater than zero.")
			}
			return &splitDataset{s, parts}, err
		})
}

// splitDataset splits each batch into parts. If it cannot be split evenly, the last parts are
// smaller or empty.
type splitDataset struct {
	stage
	parts int64
}

func (d *splitDataset) cardinality() int64 { return unknown }

func (d *splitDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &splitIterator{source: src, d: d}, err
}

type splitIterator struct {
	source
	d     *splitDataset
	batch element
	i     int64 // index of the next part of batch; 0 between batches
}

func (it *splitIterator) next(r *run) (element, error) {
	if it.i == 0 {
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		for c := range e {
			if e[c].Rank() == 0 {
				e.release()
				return nil, status.InvalidArgumentf("Cannot rebatch dataset: All components must have at least one dimension. Perhaps your "+
					"input dataset is not batched? Component %d is scalar.", c)
			}
		}
		it.batch.release()
		it.batch = e
	}
	out := element(membudget.Make[tensor.Tensor](len(it.batch)))
	for c := range it.batch {
		rows := int64(it.batch[c].Dim(0))
		each := (rows + it.d.parts - 1) / it.d.parts
		lo := min(each*it.i, rows)
		out[c] = stacking.View(&it.batch[c], int(lo), int(min(lo+each, rows)))
	}
	it.i = (it.i + 1) % it.d.parts
	return out, nil
}

func (it *splitIterator) state(a *archive) {
	a.int(&it.i)
	a.element(&it.batch)
	it.source.state(a)
	if !a.loading {
		return
	}
	bad := it.i < 0 || it.i >= it.d.parts || it.i > 0 && len(it.batch) == 0
	for c := range it.batch {
		bad = bad || it.batch[c].Rank() == 0
	}
	if bad {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
	}
}
