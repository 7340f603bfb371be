package data

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/strided"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "DenseToSparseBatchDataset", Doc: "Creates a dataset that batches elements into sparse tensors, stored in variants as SerializeSparse does.",
		In: []string{"input_dataset: variant", "batch_size: int64", "row_shape: int64"}, Attrs: withSpec(),
	}, newSparseBatch)
}

// sparseRows is the shape of the rows of a sparse batch. Unknown dimensions are those of the
// largest row.
type sparseRows struct{ shape tensor.PartialShape }

func newSparseBatch(n *node, ctx *kernel.Context) (dataset, error) {
	s, err := n.stageOf(ctx)
	if err != nil {
		return nil, err
	}
	if len(s.input.elementSpec().types) != 1 {
		return nil, status.InvalidArgumentf("DenseToSparseBatchDataset only supports inputs with a single component.")
	}
	d := &batchDataset{stage: s}
	if err := d.parse(n, ctx); err != nil {
		return nil, err
	}
	if ctx.Input(2).Rank() != 1 {
		return nil, status.InvalidArgumentf("row_shape must be a vector")
	}
	shape, err := shapefn.FromDims(tensor.Values[int64](ctx.Input(2)))
	if err != nil {
		return nil, err
	}
	d.join = sparseRows{shape}.join
	return d, nil
}

func (s sparseRows) join(rows []element, size int64) (element, error) {
	dims, total, err := s.measure(rows)
	if err != nil {
		return nil, err
	}
	dims[0] = int64(len(rows))
	rank := len(dims)
	indices := membudget.Make[int64](total * rank)
	values, err := tensor.Alloc(rows[0][0].DType(), tensor.Shape{int64(total)})
	if err != nil {
		return nil, err
	}
	at := 0
	for r := range rows {
		row := &rows[r][0]
		n := row.NumElements()
		strided.CopyRows(&values, strided.Rows{Offset: at}, row, strided.Rows{}, 1, n)
		for i := range n {
			index := indices[(at+i)*rank : (at+i+1)*rank]
			index[0] = int64(r)
			for rest, axis := i, rank-1; axis > 0; axis-- {
				index[axis] = int64(rest % row.Dim(axis-1))
				rest /= row.Dim(axis - 1)
			}
		}
		at += n
	}
	places, err := tensor.FromSlice(tensor.Shape{int64(total), int64(rank)}, indices)
	if err != nil {
		return nil, err
	}
	return element{packSparse(places, values, tensor.Vector(dims...))}, nil
}

// packSparse packs the parts of a sparse tensor into variants, as SerializeSparse does. It takes
// over the parts.
func packSparse(parts ...tensor.Tensor) tensor.Tensor {
	out := membudget.Make[tensor.VariantValue](len(parts))
	for i, part := range parts {
		out[i].Value = tensor.EncodedVariant{TypeName: "tensorflow::Tensor", Tensors: []tensor.Tensor{part}}
	}
	return tensor.Vector(out...)
}

// measure returns the shape of a batch and its number of values. The caller sets the first
// dimension.
func (s sparseRows) measure(rows []element) (dims []int64, total int, err error) {
	dims = append([]int64{0}, s.shape.Dims()...)
	for i := range dims {
		dims[i] = max(dims[i], 0)
	}
	for r := range rows {
		row := &rows[r][0]
		if row.Rank() != s.shape.Rank() {
			return nil, 0, status.InvalidArgumentf("Input element had shape (%v) that is incompatible with the row shape (%v).", row.Shape(), s.shape)
		}
		for axis, n := range row.Shape() {
			if s.shape.Dim(axis) == tensor.UnknownDim {
				dims[axis+1] = max(dims[axis+1], n)
			} else if n > s.shape.Dim(axis) {
				return nil, 0, status.DataLossf("Input element had shape (%v) that is larger than the row shape (%v).", row.Shape(), s.shape)
			}
		}
		total += row.NumElements()
	}
	return dims, total, nil
}
