package data

import (
	"sort"

	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "SparseTensorSliceDataset", Doc: "Creates a dataset of the rows of a sparse tensor: their indices, values and shape.",
		In: []string{"indices: int64", "values: Tvalues", "dense_shape: int64"}, Attrs: []string{"Tvalues: type"}, Stateful: true,
	}, newSparseSlices)
}

type sparseSlices struct {
	spec
	indices, values tensor.Tensor
	shape           []int64
}

func newSparseSlices(_ *node, ctx *kernel.Context) (dataset, error) {
	indices, values, shape := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	switch {
	case indices.Rank() != 2:
		return nil, status.InvalidArgumentf("Input indices must be a matrix. Got: %v", indices.Shape())
	case values.Rank() != 1:
		return nil, status.InvalidArgumentf("Input values must be a vector. Got: %v", values.Shape())
	case shape.Rank() != 1:
		return nil, status.InvalidArgumentf("Input shape must be a vector. Got: %v", shape.Shape())
	case values.Dim(0) != indices.Dim(0):
		return nil, status.InvalidArgumentf("Number of values must match first dimension of indices. Got %d values, indices shape: %v",
			values.Dim(0), indices.Shape())
	case shape.Dim(0) != indices.Dim(1):
		return nil, status.InvalidArgumentf("Number of dimensions must match second dimension of indices. Got %d dimensions, indices shape: %v",
			shape.Dim(0), indices.Shape())
	case shape.Dim(0) == 0:
		return nil, status.InvalidArgumentf("The shape argument requires at least one element.")
	}
	d := &sparseSlices{indices: indices.Retain(), values: values.Retain(), shape: append([]int64(nil), tensor.Values[int64](shape)...)}
	for i := range values.Dim(0) - 1 {
		if d.row(i+1) < d.row(i) {
			return nil, status.Unimplementedf("The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input " +
				"is not currently supported.")
		}
	}
	rank := int64(len(d.shape) - 1)
	d.types = []tensor.DType{tensor.Int64, values.DType(), tensor.Int64}
	d.shapes = []tensor.PartialShape{
		tensor.MakePartial(tensor.UnknownDim, rank), tensor.MakePartial(tensor.UnknownDim), tensor.MakePartial(rank),
	}
	return d, nil
}

// row returns the row that value i belongs to.
func (d *sparseSlices) row(i int) int64 { return tensor.Values[int64](&d.indices)[i*len(d.shape)] }

func (d *sparseSlices) cardinality() int64 { return d.shape[0] }

func (d *sparseSlices) at(_ *run, i int64) (element, error) {
	n := d.values.Dim(0)
	lo := sort.Search(n, func(k int) bool { return d.row(k) >= i })
	hi := sort.Search(n, func(k int) bool { return d.row(k) > i })
	rank := len(d.shape) - 1
	indices, err := tensor.Alloc(tensor.Int64, tensor.Shape{int64(hi - lo), int64(rank)})
	if err != nil {
		return nil, err
	}
	from, to := tensor.Values[int64](&d.indices), tensor.Values[int64](&indices)
	for k := range hi - lo {
		copy(to[k*rank:(k+1)*rank], from[(lo+k)*(rank+1)+1:])
	}
	values, err := tensor.Alloc(d.values.DType(), tensor.Shape{int64(hi - lo)})
	if err != nil {
		return nil, err
	}
	strided.CopyRows(&values, strided.Rows{}, &d.values, strided.Rows{Offset: lo}, 1, hi-lo)
	return element{indices, values, tensor.Vector(append([]int64(nil), d.shape[1:]...)...)}, nil
}

func (d *sparseSlices) iterate(*run) (iterator, error) { return &indexIterator{d: d}, nil }

// indexIterator iterates over a dataset by index.
type indexIterator struct {
	d indexed
	i int64
}

func (it *indexIterator) next(r *run) (element, error) {
	if it.i >= it.d.cardinality() {
		return nil, errEnd
	}
	it.i++
	return it.d.at(r, it.i-1)
}

func (it *indexIterator) state(a *archive) {
	a.int(&it.i)
	if it.i < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid index: %d", it.i))
	}
}
