package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("RebatchDatasetV2", "Creates a dataset that changes the batch size of its input. The batch sizes are used in turn.",
		[]string{"batch_sizes: int64", "drop_remainder: bool"}, withSpec(), newRebatch)
}

type rebatchDataset struct {
	stage
	sizes         []int64
	dropRemainder bool // drop the last batch if it is smaller
}

func newRebatch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	in := ctx.Input(1)
	if in.Rank() > 1 {
		return nil, status.InvalidArgumentf("`batch_sizes` must be a scalar or a vector.")
	}
	d := &rebatchDataset{stage: s, sizes: append([]int64(nil), tensor.Values[int64](in)...)}
	if len(d.sizes) == 0 {
		return nil, status.InvalidArgumentf("`batch_sizes` must not be empty.")
	}
	for _, size := range d.sizes {
		if size < 0 {
			return nil, status.InvalidArgumentf("`batch_sizes` must not be negative, got %d.", size)
		}
	}
	var err error
	d.dropRemainder, err = scalar[bool](n, ctx, "drop_remainder")
	return d, err
}

func (d *rebatchDataset) cardinality() int64 { return d.infiniteOrUnknown() }

func (d *rebatchDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &rebatchIterator{unbatchIterator: unbatchIterator{source: src}, d: d}, err
}

// rebatchIterator splits batches into rows and stacks these into batches of other sizes.
type rebatchIterator struct {
	unbatchIterator
	d         *rebatchDataset
	n         int64 // number of batches returned
	exhausted bool  // no rows are left
}

func (it *rebatchIterator) next(r *run) (element, error) {
	if it.exhausted {
		return nil, errEnd
	}
	size := it.d.sizes[it.n%int64(len(it.d.sizes))]
	if size == 0 {
		it.n++
		return it.d.empty()
	}
	var rows []element
	defer func() {
		for _, row := range rows {
			row.release()
		}
	}()
	for int64(len(rows)) < size {
		row, err := it.unbatchIterator.next(r)
		if errors.Is(err, errEnd) {
			it.exhausted = true
			break
		}
		if err != nil {
			return nil, err
		}
		rows = membudget.Append(rows, row)
	}
	if len(rows) == 0 || it.d.dropRemainder && int64(len(rows)) < size {
		return nil, errEnd
	}
	it.n++
	return stack(rows, size)
}

// empty returns a batch without rows. It does not read the input.
func (d *rebatchDataset) empty() (element, error) {
	e := element(membudget.Make[tensor.Tensor](len(d.types)))
	for i, dtype := range d.types {
		dims := tensor.Shape{0}
		if s := d.shapes[i]; s.RankKnown() && s.Rank() > 0 {
			dims = s.Dims()
			dims[0] = 0
			for axis := range dims {
				dims[axis] = max(dims[axis], 0)
			}
		}
		var err error
		if e[i], err = tensor.Zeros(dtype, dims); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (it *rebatchIterator) state(a *archive) {
	a.int(&it.n)
	a.bool(&it.exhausted)
	it.unbatchIterator.state(a)
	if a.loading && it.n < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid count: %d", it.n))
	}
}
