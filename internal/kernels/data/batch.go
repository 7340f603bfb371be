package data

import (
	"errors"

	"github.com/weft-ml/weft/internal/opkit/stacking"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("BatchDataset", "Creates a dataset that batches elements of its input.", []string{"batch_size: int64"}, withSpecAndMetadata(), newBatch)
	registerStage("BatchDatasetV2", "Creates a dataset that batches elements of its input.",
		[]string{"batch_size: int64", "drop_remainder: bool"}, append([]string{"parallel_copy: bool = false"}, withSpecAndMetadata()...), newBatch)
	registerStage("ParallelBatchDataset", "Creates a dataset that batches elements of its input.",
		[]string{"batch_size: int64", "num_parallel_calls: int64", "drop_remainder: bool"},
		append(withSpec("parallel_copy: bool = false"), "deterministic: string = 'default'", metadata), newParallelBatch)
}

// batchDataset stacks elements into batches. The last batch is smaller, or dropped, if there are
// not enough elements.
type batchDataset struct {
	stage
	size          int64
	dropRemainder bool // drop the last batch if it is smaller
	join          func(rows []element, size int64) (element, error)
}

func newBatch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	d := &batchDataset{stage: s, join: stack}
	return d, d.parse(n, ctx)
}

// newParallelBatch creates the batches sequentially for every policy: the elements of a batch are
// read from the input in order, so a batch cannot be ready before the preceding one.
func newParallelBatch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	if _, err := n.determinism(); err != nil {
		return nil, err
	}
	if _, err := scalar[int64](n, ctx, "num_parallel_calls"); err != nil {
		return nil, err
	}
	return newBatch(n, ctx, s)
}

// parse reads the batch size.
func (d *batchDataset) parse(n *node, ctx *kernel.Context) (err error) {
	if d.size, err = scalar[int64](n, ctx, "batch_size"); err != nil {
		return err
	}
	if d.size <= 0 {
		return status.InvalidArgumentf("Batch size must be greater than zero.")
	}
	if n.hasArg("drop_remainder") {
		d.dropRemainder, err = scalar[bool](n, ctx, "drop_remainder")
	}
	return err
}

func (d *batchDataset) cardinality() int64 {
	n := d.input.cardinality()
	if n < 0 {
		return n
	}
	if n%d.size == 0 || d.dropRemainder {
		return n / d.size
	}
	return n/d.size + 1
}

func (d *batchDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &batchIterator{source: src, d: d}, err
}

type batchIterator struct {
	source
	d         *batchDataset
	exhausted bool
}

func (it *batchIterator) next(r *run) (element, error) {
	if it.exhausted {
		return nil, errEnd
	}
	var rows []element
	defer func() {
		for _, row := range rows {
			row.release()
		}
	}()
	for int64(len(rows)) < it.d.size {
		e, err := it.pull(r)
		if errors.Is(err, errEnd) {
			it.exhausted = true
			break
		}
		if err != nil {
			return nil, err
		}
		rows = membudget.Append(rows, e)
	}
	if len(rows) == 0 || it.d.dropRemainder && int64(len(rows)) < it.d.size {
		return nil, errEnd
	}
	return it.d.join(rows, it.d.size)
}

func (it *batchIterator) state(a *archive) {
	a.bool(&it.exhausted)
	it.source.state(a)
}

// stack stacks elements whose components have equal shapes.
func stack(rows []element, _ int64) (element, error) {
	out := element(membudget.Make[tensor.Tensor](len(rows[0])))
	for i := range out {
		first := &rows[0][i]
		column := membudget.Make[tensor.Tensor](len(rows))
		for r, row := range rows {
			if !row[i].Shape().Equal(first.Shape()) {
				return nil, status.InvalidArgumentf("Cannot batch tensors with different shapes in component %d. First element had shape %v "+
					"and element %d had shape %v.", i, first.Shape(), r, row[i].Shape())
			}
			column[r] = row[i]
		}
		var err error
		if out[i], err = stacking.Stack(first.DType(), first.Shape(), column); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rowShapes returns the shapes of the rows of batches.
func rowShapes(s *spec) []tensor.PartialShape {
	out := membudget.Make[tensor.PartialShape](len(s.shapes))
	for i, b := range s.shapes {
		if b.RankKnown() && b.Rank() > 0 {
			out[i] = tensor.MakePartial(b.Dims()[1:]...)
		} else {
			out[i] = tensor.PartialShape{}
		}
	}
	return out
}
