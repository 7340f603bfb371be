package data

import (
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "RangeDataset", Doc: "Creates a dataset of the numbers from start to stop (exclusive).",
		In:    []string{"start: int64", "stop: int64", "step: int64"},
		Attrs: append(withSpecAndMetadata(), "replicate_on_split: bool = false"), Stateful: true,
	}, newRange)
}

type rangeDataset struct {
	spec
	start, stop, step int64
}

func newRange(n *node, ctx *kernel.Context) (dataset, error) {
	v, err := n.scalars(ctx, "start", "stop", "step")
	if err != nil {
		return nil, err
	}
	if v[2] == 0 {
		return nil, status.InvalidArgumentf("step must be a non-zero integer.")
	}
	return &rangeDataset{n.spec(), v[0], v[1], v[2]}, nil
}

// cardinality saturates at the largest number, which stands for an infinite cardinality.
func (d *rangeDataset) cardinality() int64 {
	if d.stop == math.MaxInt64 {
		return infinite
	}
	return d.count()
}

func (d *rangeDataset) count() int64 {
	switch {
	case d.step > 0 && d.start < d.stop:
		return int64((uint64(d.stop)-uint64(d.start)-1)/uint64(d.step) + 1)
	case d.step < 0 && d.start > d.stop:
		return int64((uint64(d.start)-uint64(d.stop)-1)/-uint64(d.step) + 1)
	}
	return 0
}

func (d *rangeDataset) iterate(*run) (iterator, error) {
	return &rangeIterator{d: d, n: d.count()}, nil
}

type rangeIterator struct {
	d    *rangeDataset
	i, n int64
}

func (it *rangeIterator) next(r *run) (element, error) {
	if it.i >= it.n {
		return nil, errEnd
	}
	e, err := it.d.at(r, it.i)
	it.i++
	return e, err
}

func (it *rangeIterator) state(a *archive) { a.int(&it.i) }

// integer returns a scalar of a numeric type.
func integer(dtype tensor.DType, v int64) (tensor.Tensor, error) {
	if dtype == tensor.Int64 {
		return tensor.Scalar(v), nil
	}
	t, err := tensor.FromFloat(dtype, float64(v))
	if err != nil {
		err = status.InvalidArgumentf("Unsupported data type: %v", dtype)
	}
	return t, err
}
